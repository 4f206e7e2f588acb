import { UnheededPolicies } from '../scheduler/unheeded-policies.ts';
import { EXTENDER_SERVICE } from './extender-certificates.ts';
import type { HostServices } from './host-services.ts';

/** What a replica without the component scheduler has to say of policies. */
export function unheededPolicies({ host, config, events, logger }: HostServices): UnheededPolicies {
  const { namespace } = config;
  return new UnheededPolicies({ host, namespace, leaseName: EXTENDER_SERVICE, events, logger, clock: Date.now });
}
