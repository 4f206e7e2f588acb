import { HOST_LABEL, HOST_UID_ANNOTATION } from '../../../src/api/marks.ts';
import type { Change, SimObject } from '../sim-cluster.ts';
import { isOfProgram } from '../sim-process.ts';
import type { World } from '../world.ts';
import type { Report } from './report.ts';

interface HostVolume {
  readonly policy: string | undefined;
  readonly phase: string | undefined;
}

/** I20: data in a member are deleted only when the claim of the host is gone for good, and its volume says that they go with it. */
export class DataOracle {
  readonly #world: World;
  readonly #report: Report;
  /** Claims that the host has, by UID. */
  readonly #claims = new Set<string>();
  /** Volumes that the host has, or had last, by UID of their claim. */
  readonly #volumes = new Map<string, HostVolume>();

  constructor(world: World, report: Report) {
    this.#world = world;
    this.#report = report;
  }

  changed(change: Change): void {
    const { cluster, object, type } = change;
    if (cluster !== this.#world.host) {
      if (object['kind'] === 'PersistentVolumeClaim') this.#inMember(change);
      return;
    }
    if (object['kind'] === 'PersistentVolumeClaim') {
      if (type === 'DELETED') this.#claims.delete(object.metadata.uid);
      else this.#claims.add(object.metadata.uid);
    } else if (object['kind'] === 'PersistentVolume') this.#volume(object);
  }

  #volume({ spec, status }: SimObject & { spec?: unknown; status?: unknown }): void {
    const { claimRef, persistentVolumeReclaimPolicy: policy } = (spec ?? {}) as {
      claimRef?: { uid?: string };
      persistentVolumeReclaimPolicy?: string;
    };
    const { phase } = (status ?? {}) as { phase?: string };
    if (claimRef?.uid !== undefined) this.#volumes.set(claimRef.uid, { policy, phase });
  }

  #inMember({ object, previous, type, by, cluster }: Change): void {
    const { name, labels, annotations, deletionTimestamp } = (previous ?? object).metadata;
    const isAsked =
      type === 'DELETED' || (object.metadata.deletionTimestamp !== undefined && deletionTimestamp === undefined);
    if (!isAsked || !isOfProgram(by) || labels?.[HOST_LABEL] === undefined) return;
    const uid = annotations?.[HOST_UID_ANNOTATION] ?? '';
    const volume = this.#volumes.get(uid);
    const what = `${by} deletes the data of claim ${name} in ${cluster.name}`;
    if (this.#claims.has(uid)) this.#report('I20', `${what}, which the host has`);
    else if (volume?.policy !== 'Delete') this.#report('I20', `${what}, whose policy is ${String(volume?.policy)}`);
    else if (volume.phase !== 'Released') this.#report('I20', `${what}, whose volume is ${String(volume.phase)}`);
  }
}
