import { hostNamespaceFor, type NamespaceMapping } from '../api/namespace-mapping.ts';
import type { Namespace } from '../kube/core-v1.ts';
import type { Informer } from '../kube/informer.ts';
import { keyFor, splitKey } from '../kube/object.ts';

/** Before the key of something of the host that no namespace of the member stands for. */
export const UNMAPPED = '>';

export interface ExchangedNamesOptions {
  readonly namespaces: Pick<Informer<Namespace>, 'get'>;
  /** Whether a namespace of the member is ours: made by us, or lent to us. */
  readonly isUsable: (namespace: Namespace) => boolean;
  readonly memberNamespaceOf: (hostNamespace: string) => string | undefined;
  readonly mapping: () => NamespaceMapping;
}

/** Which name in the host stands for which in a member. Keys are those of the member, unless they are called host keys. */
export class ExchangedNames {
  readonly #o: ExchangedNamesOptions;

  constructor(options: ExchangedNamesOptions) {
    this.#o = options;
  }

  /** The key in the member of something of the host's. */
  keyOf(hostKey: string): string {
    const { namespace = '', name } = splitKey(hostKey);
    const mapped = this.#o.memberNamespaceOf(namespace);
    return mapped === undefined ? `${UNMAPPED}${hostKey}` : keyFor(mapped, name);
  }

  hostKeyOf(key: string): string | undefined {
    const { namespace = '', name } = splitKey(key);
    const mapped = hostNamespaceFor(this.#o.mapping(), namespace);
    return mapped === undefined ? undefined : keyFor(mapped, name);
  }

  /** The key in the host of something in a namespace that is lent to us. */
  openHostKey(key: string): string | undefined {
    const { namespaces, isUsable } = this.#o;
    const found = namespaces.get(splitKey(key).namespace ?? '');
    const isOpen = found !== undefined && found.metadata.deletionTimestamp === undefined && isUsable(found);
    return isOpen ? this.hostKeyOf(key) : undefined;
  }
}
