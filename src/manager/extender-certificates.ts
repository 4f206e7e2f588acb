import type { Logger } from 'pino';
import type { HostServices } from './host-services.ts';
import { keyFor } from '../kube/object.ts';
import type { ServingCertificates } from '../serving/certificates.ts';
import { FileCertificates } from '../serving/file-certificates.ts';
import { SelfSignedCertificates } from '../serving/self-signed-certificates.ts';
import { selfSigned } from '../serving/serving-key.ts';
import { SharedCertificates } from '../serving/shared-certificates.ts';

/** Name of the Service in front of the extender, in the namespace of the manager (manifests/scheduler). */
export const EXTENDER_SERVICE = 'spillway-scheduler';
/** Whom a second kube-scheduler is towards the extender: a name without rights in the host. */
const CLIENT_USER = 'spillway-scheduler-client';
/** Of a certificate that is shown until there is one that callers trust, in ms. */
const STAND_IN_LIFE_MS = 30 * 24 * 3_600_000;

export interface ExtenderCertificates extends ServingCertificates {
  /** PEM; the authority that Spillway itself gives certificates to schedulers by. Undefined where it gives none. */
  clientCa(): string | undefined;
  /** Why no scheduler can trust what is shown, in words; undefined when one can. */
  problem(): string | undefined;
}

/**
 * What the extender shows to schedulers, as the configuration says, and whom it believes beside the host's own authority.
 *
 * @throws when files that are named cannot be used.
 */
export async function extenderCertificates(services: HostServices, logger: Logger): Promise<ExtenderCertificates> {
  const { scheduler, namespace } = services.config;
  const { servingCertificate } = scheduler;
  const ofNobody = { clientCa: () => undefined, problem: () => undefined };
  switch (servingCertificate.mode) {
    case 'Files': {
      const files = await FileCertificates.open({ ...servingCertificate, logger });
      return { ...ofNobody, current: () => files.current(), run: (signal) => files.run(signal) };
    }
    case 'SelfSigned': {
      const addresses = scheduler.names ?? [...serviceNames(namespace), services.nodeAddress];
      const node = { nodeName: EXTENDER_SERVICE, addresses };
      const own = await SelfSignedCertificates.create({ node, logger, clock: Date.now });
      return { ...ofNobody, current: () => own.current(), run: (signal) => own.run(signal) };
    }
    case 'SelfManaged': {
      const { secretName, clientSecretName } = servingCertificate;
      return await selfManaged(services, { secretName, clientSecretName }, logger);
    }
  }
}

/** Until the Secret was read or made, a certificate that nobody trusts stands in: schedulers then wait as if nothing answered. */
async function selfManaged(
  services: HostServices,
  { secretName, clientSecretName }: { secretName: string; clientSecretName: string },
  logger: Logger,
): Promise<ExtenderCertificates> {
  const { config, host } = services;
  const { namespace } = config;
  const node = { nodeName: EXTENDER_SERVICE, addresses: serviceNames(namespace) };
  const standIn = await selfSigned(node, Date.now(), STAND_IN_LIFE_MS);
  const service = keyFor(namespace, EXTENDER_SERVICE);
  const shared = new SharedCertificates({
    host,
    owner: 'the extender',
    secret: { namespace, name: secretName },
    purpose: () => ({
      authority: 'spillway-scheduler-ca',
      // The host's own scheduler often cannot look up names of Services.
      names: config.scheduler.names ?? [
        ...serviceNames(namespace),
        ...addressOf(services.services.get(service)?.spec?.clusterIP),
      ],
    }),
    client: { user: CLIENT_USER, secret: { namespace, name: clientSecretName } },
    logger,
    clock: Date.now,
  });
  return {
    current: () => shared.current() ?? standIn,
    clientCa: () => shared.bundle(),
    problem: () => (shared.current() === undefined ? 'there is no certificate for schedulers yet' : undefined),
    run: async (signal) => {
      // Without its address the certificate would be made twice.
      await services.services.whenSynced(signal).catch(() => undefined);
      const seen = ({ metadata }: { metadata: { name: string; namespace?: string } }): void => {
        if (keyFor(metadata.namespace, metadata.name) === service) shared.trigger();
      };
      const off = services.services.on({ added: seen, updated: seen });
      await shared.run(signal);
      off();
    },
  };
}

function serviceNames(namespace: string): string[] {
  return [`${EXTENDER_SERVICE}.${namespace}.svc`, `${EXTENDER_SERVICE}.${namespace}`];
}

function addressOf(clusterIp: string | undefined): string[] {
  return clusterIp === undefined || clusterIp === '' || clusterIp === 'None' ? [] : [clusterIp];
}
