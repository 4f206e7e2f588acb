import type { KubeObject } from '../kube/object.ts';
import { isSameOrder } from './order.ts';

/** What is remembered of orders by their keys, of each as long as it asks for the same; may be lost. */
export class OrderMemory<T> {
  readonly #known = new Map<string, { readonly asked: KubeObject; readonly memory: T }>();

  get(key: string): T | undefined {
    return this.#known.get(key)?.memory;
  }

  /** `begin`: what is remembered of one that asks for it since now. */
  of(key: string, asked: KubeObject, begin: () => T): T {
    const known = this.#known.get(key);
    if (known !== undefined && isSameOrder(known.asked, asked)) return known.memory;
    const memory = begin();
    this.#known.set(key, { asked: { metadata: asked.metadata }, memory });
    return memory;
  }

  forget(key: string): undefined {
    this.#known.delete(key);
  }
}
