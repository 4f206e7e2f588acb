import type { Logger } from 'pino';
import { MEMBER_LABEL } from '../api/marks.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../kube/volumes.ts';
import type { KubeClient } from '../kube/client.ts';
import type { InformerMetrics } from '../kube/informer-metrics.ts';
import { Informer } from '../kube/informer.ts';
import { identifying, keyFor, keyOf } from '../kube/object.ts';
import { PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, STORAGE_CLASSES } from '../kube/resource.ts';
import type { HostClaim } from './claim-refusal.ts';
import { type MemberVolume, readMemberVolume } from '../api/member-volume.ts';
import { volumeNameOf } from './member-volume.ts';

export interface HostClaimsOptions {
  host: KubeClient;
  logger: Logger;
  metrics?: InformerMetrics | undefined;
}

export interface HostClaimsHandler {
  /** A claim, or the volume that was made for it, came, changed or went. */
  claim(key: string): void;
  /** A volume of a member came, changed or went. */
  volume(name: string): void;
  /** All has been read, or classes changed. */
  everything(): void;
}

/**
 * What the host knows about claims, read once for all members: its claims, its storage classes, and those of its volumes
 * that are in members.
 */
export class HostClaims {
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #classes: Informer<StorageClass>;
  readonly #volumes: Informer<PersistentVolume>;
  readonly #handlers = new Set<HostClaimsHandler>();

  constructor({ host, logger, metrics }: HostClaimsOptions) {
    const common = { client: host, logger, metrics };
    this.#claims = new Informer({
      ...common,
      resource: PERSISTENT_VOLUME_CLAIMS,
      transform: (raw) => claimProjection(raw as PersistentVolumeClaim),
    });
    this.#classes = new Informer({
      ...common,
      resource: STORAGE_CLASSES,
      transform: (raw) => classProjection(raw as StorageClass),
    });
    this.#volumes = new Informer({
      ...common,
      resource: PERSISTENT_VOLUMES,
      labelSelector: MEMBER_LABEL,
      transform: (raw) => volumeProjection(raw as PersistentVolume),
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    const claim = (changed: PersistentVolumeClaim): void => this.#notify((handler) => handler.claim(keyOf(changed)));
    const volume = (changed: PersistentVolume): void => this.#volumeChanged(changed);
    const everything = (): void => this.#notify((handler) => handler.everything());
    const off = [
      this.#claims.on({ added: claim, updated: claim, deleted: claim }),
      this.#volumes.on({ added: volume, updated: volume, deleted: volume }),
      this.#classes.on({ added: everything, updated: everything, deleted: everything }),
    ];
    const informers = [this.#claims, this.#classes, this.#volumes];
    const synced = Promise.all(informers.map(async (one) => await one.whenSynced(signal))).then(
      everything,
      () => undefined,
    );
    await Promise.all([...informers.map(async (one) => await one.run(signal)), synced]);
    for (const unsubscribe of off) unsubscribe();
  }

  /** Set until all has been read, with what keeps it from being read. */
  unknown(): { problem: string | undefined } | undefined {
    const missing = [this.#claims, this.#classes, this.#volumes].filter(({ hasSynced }) => !hasSynced);
    if (missing.length === 0) return undefined;
    return { problem: missing.map(({ problem }) => problem).find((problem) => problem !== undefined) };
  }

  get(key: string): HostClaim | undefined {
    const claim = this.#claims.get(key);
    if (claim === undefined) return undefined;
    const { storageClassName = '', volumeName = '' } = claim.spec;
    const volume = this.#volumes.get(volumeName === '' ? volumeNameOf(claim.metadata) : volumeName);
    return {
      claim,
      storageClass: this.#classes.get(storageClassName),
      volume: volume === undefined ? undefined : readMemberVolume(volume),
    };
  }

  /** A volume that is in some member. */
  volume(name: string): MemberVolume | undefined {
    const found = this.#volumes.get(name);
    return found === undefined ? undefined : readMemberVolume(found);
  }

  claims(): Iterable<PersistentVolumeClaim> {
    return this.#claims.values();
  }

  volumes(): Iterable<PersistentVolume> {
    return this.#volumes.values();
  }

  /** Returns what ends it. */
  on(handler: HostClaimsHandler): () => void {
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  #volumeChanged({ metadata, spec }: PersistentVolume): void {
    const { namespace, name } = spec.claimRef ?? {};
    this.#notify((handler) => {
      handler.volume(metadata.name);
      if (name !== undefined) handler.claim(keyFor(namespace, name));
    });
  }

  #notify(how: (handler: HostClaimsHandler) => void): void {
    for (const handler of this.#handlers) how(handler);
  }
}

/** Annotations may be long and repeat the object. */
const APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

function claimProjection({ metadata, spec, status }: PersistentVolumeClaim): PersistentVolumeClaim {
  const { [APPLIED]: _, ...annotations } = metadata.annotations ?? {};
  const { deletionTimestamp, labels, ownerReferences } = metadata;
  return {
    metadata: {
      ...identifying(metadata),
      ...(labels === undefined ? {} : { labels }),
      annotations,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      ...(ownerReferences === undefined ? {} : { ownerReferences }),
    },
    spec,
    ...(status === undefined ? {} : { status }),
  };
}

function classProjection({ metadata, provisioner, ...rest }: StorageClass): StorageClass {
  const { parameters, reclaimPolicy, volumeBindingMode } = rest;
  return {
    metadata: identifying(metadata),
    provisioner,
    ...(parameters === undefined ? {} : { parameters }),
    ...(reclaimPolicy === undefined ? {} : { reclaimPolicy }),
    ...(volumeBindingMode === undefined ? {} : { volumeBindingMode }),
  };
}

function volumeProjection({ metadata, spec, status }: PersistentVolume): PersistentVolume {
  const { annotations, labels, deletionTimestamp } = metadata;
  return {
    metadata: {
      ...identifying(metadata),
      ...(labels === undefined ? {} : { labels }),
      ...(annotations === undefined ? {} : { annotations }),
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    },
    spec,
    ...(status === undefined ? {} : { status }),
  };
}
