import type { Api } from '../../hack/api-access.ts';
import { GiveUp } from '../../hack/until.ts';
import type { Pod } from '../../src/kube/core-v1.ts';

/** What became of one pod of the host. */
export interface Life {
  readonly namespace: string;
  readonly name: string;
  /** UID of its controller. */
  readonly owner: string | undefined;
  readonly priority: number;
  /** In ms since 1970, as all times here. */
  readonly createdAt: number;
  node: string | undefined;
  boundAt: number | undefined;
  /** Reason of its condition DisruptionTarget, such as `PreemptionByScheduler`, and when it was seen first. */
  disrupted: { reason: string; at: number } | undefined;
  gone: boolean;
}

/** Every pod of the host that there was, as a watch showed it. */
export class History {
  /** By UID. */
  readonly lives = new Map<string, Life>();
  readonly #stop = new AbortController();
  readonly #following: Promise<void>;
  #failed: unknown;

  constructor(host: Api) {
    const path = '/api/v1/pods';
    this.#following = host
      .follow(path, this.#stop.signal, ({ type, object }) => this.#seen(type, object as unknown as Pod))
      .catch((error: unknown) => {
        this.#failed = error;
      });
  }

  #seen(type: string, { metadata, spec, status }: Pod): void {
    const { uid = '', namespace = '', name, creationTimestamp = '' } = metadata;
    const owner = metadata.ownerReferences?.find(({ controller }) => controller === true);
    const life: Life = this.lives.get(uid) ?? {
      namespace,
      name,
      owner: owner?.uid,
      priority: (spec as { priority?: number }).priority ?? 0,
      createdAt: Date.parse(creationTimestamp),
      node: undefined,
      boundAt: undefined,
      disrupted: undefined,
      gone: false,
    };
    this.lives.set(uid, life);
    life.node ??= spec.nodeName;
    if (life.node !== undefined) life.boundAt ??= Date.now();
    const target = status?.conditions?.find((one) => one.type === 'DisruptionTarget' && one.status === 'True');
    if (target !== undefined) life.disrupted ??= { reason: target.reason ?? '', at: Date.now() };
    if (type === 'DELETED') life.gone = true;
  }

  /** @throws when it was not followed all the time. */
  check(): void {
    if (this.#failed !== undefined) throw new GiveUp('the watch of pods failed', { cause: this.#failed });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#following;
  }
}
