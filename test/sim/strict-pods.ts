import type { JsonObject } from '../../src/kube/json-equal.ts';
import { podSpec } from './actors/creations.ts';

/** Of nodes in members that are for some pods only. */
export const DEDICATED = { key: 'dedicated', operator: 'Equal', value: 'web', effect: 'NoSchedule' };

/** A pod that is kept from all that the Restricted level of Pod Security keeps pods from. */
export function strictSpec(): JsonObject {
  return {
    ...podSpec('Always'),
    securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'main',
        image: 'busybox',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
      },
    ],
  };
}

/** What would take one of its restrictions away, as overriders have it. */
export const LOOSENINGS: readonly JsonObject[] = [
  { path: '/spec/securityContext/runAsNonRoot', operator: 'remove' },
  { path: '/spec/securityContext/seccompProfile', operator: 'remove' },
  { path: '/spec/containers/0/securityContext/allowPrivilegeEscalation', operator: 'remove' },
  { path: '/spec/containers/0/securityContext/capabilities', operator: 'remove' },
];
