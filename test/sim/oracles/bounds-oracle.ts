import { asPod, hostUidOf } from '../pod-shapes.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { DEDICATED } from '../strict-pods.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

/** What of a security context holds a container back. */
interface Security {
  readonly runAsNonRoot?: boolean;
  readonly allowPrivilegeEscalation?: boolean;
  readonly seccompProfile?: { readonly type?: string };
  readonly capabilities?: { readonly drop?: readonly string[] };
}
interface Secured {
  readonly name: string;
  readonly securityContext?: Security;
}

/** Copies may do no more than the pods that they run for, whatever tenants write beside these. */
export class BoundsOracle {
  readonly #world: World;
  readonly #report: Report;

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  /** `hostPod`: for which the program made a pod in a member. */
  made({ object, cluster }: Change, hostPod: SimObject): void {
    if (hostUidOf(object) !== hostPod.metadata.uid || cluster === this.#world.host) return;
    const where = `${object.metadata.name} in ${cluster.name}`;
    const has = new Map(boundsOf(object));
    for (const [container, bounds] of boundsOf(hostPod)) {
      const lost = bounds.find((one) => has.get(container)?.includes(one) !== true);
      if (lost !== undefined)
        this.#report('bounds', `${where} is without ${lost}, which holds the pod of the host back`);
    }
    if (toleratesDedicated(object) && !toleratesDedicated(hostPod))
      this.#report('bounds', `${where} tolerates ${DEDICATED.key}, which the pod of the host does not`);
  }
}

/** By container, what it is kept from, its own words before those of its pod. */
function boundsOf(pod: SimObject): [string, string[]][] {
  const spec = pod['spec'] as { securityContext?: Security; containers: readonly Secured[] };
  return spec.containers.map(({ name, securityContext }) => {
    const { runAsNonRoot, allowPrivilegeEscalation, seccompProfile, capabilities } = {
      ...spec.securityContext,
      ...securityContext,
    };
    const seccomp = seccompProfile?.type ?? 'Unconfined';
    return [
      name,
      [
        ...(runAsNonRoot === true ? ['runAsNonRoot'] : []),
        ...(allowPrivilegeEscalation === false ? ['allowPrivilegeEscalation: false'] : []),
        ...(seccomp === 'Unconfined' ? [] : [`seccomp ${seccomp}`]),
        ...(capabilities?.drop ?? []).map((one) => `dropped capability ${one}`),
      ],
    ];
  });
}

function toleratesDedicated(pod: SimObject): boolean {
  return (asPod(pod).spec.tolerations ?? []).some(({ key = '' }) => key === '' || key === DEDICATED.key);
}
