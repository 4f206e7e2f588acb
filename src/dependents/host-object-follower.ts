import type { FollowedObject, HostState } from './host-objects.ts';

/** One object of the host, followed in the name of everybody on whose behalf it is needed. */
export class HostObjectFollower {
  readonly #follow: (node: string) => FollowedObject;
  readonly #nodes = new Map<string, { followed: FollowedObject; users: number }>();

  constructor(follow: (node: string) => FollowedObject) {
    this.#follow = follow;
  }

  current(): HostState {
    const [first] = this.#nodes.values();
    return first?.followed.current() ?? { state: 'unknown', problem: undefined };
  }

  /** One more pod on that node, or policy of the manager, refers to the object. */
  need(node: string): void {
    const known = this.#nodes.get(node);
    if (known !== undefined) {
      known.users += 1;
      if (known.users === 1) known.followed.use(true);
    } else this.#nodes.set(node, { followed: this.#follow(node), users: 1 });
    this.#tidy();
  }

  /** One pod less. The last node goes on following: a successor of the pod may come. */
  leave(node: string): void {
    const known = this.#nodes.get(node);
    if (known === undefined) return;
    known.users -= 1;
    if (known.users === 0) known.followed.use(false);
    this.#tidy();
  }

  stop(): void {
    for (const { followed } of this.#nodes.values()) followed.stop();
    this.#nodes.clear();
  }

  #tidy(): void {
    for (const [node, { followed, users }] of this.#nodes) {
      if (users > 0 || this.#nodes.size === 1) continue;
      this.#nodes.delete(node);
      followed.stop();
    }
  }
}
