/** What a SubjectAccessReview asks about: always the virtual node itself, one of its subresources and a verb. */
export interface NodeAttributes {
  readonly verb: string;
  /** Any one of them allowed is enough; in the order to ask. */
  readonly subresources: readonly string[];
}

const VERBS: ReadonlyMap<string, string> = new Map([
  ['POST', 'create'],
  ['GET', 'get'],
  ['HEAD', 'get'],
  ['PUT', 'update'],
  ['PATCH', 'patch'],
  ['DELETE', 'delete'],
]);

/**
 * The fine subresources of KEP-2862 come first and `proxy`, which covers everything, second; `stats`, `metrics` and
 * `log` stand alone, as in the kubelet.
 */
const SUBRESOURCES: ReadonlyMap<string, readonly string[]> = new Map([
  ['pods', ['pods', 'proxy']],
  ['runningpods', ['pods', 'proxy']],
  ['healthz', ['healthz', 'proxy']],
  ['configz', ['configz', 'proxy']],
  ['stats', ['stats']],
  ['metrics', ['metrics']],
  ['logs', ['log']],
  ['checkpoint', ['checkpoint']],
  ['statusz', ['statusz']],
  ['flagz', ['configz']],
]);

const PROXY = ['proxy'];

/** Roots whose use runs something in a container: rights to look are never enough, whatever the method. */
const ALWAYS_CREATE: ReadonlySet<string> = new Set(['exec', 'attach', 'portForward', 'run']);

/**
 * The rights that a kubelet request needs. `root` is the path's first segment, '' for a path that cannot be read.
 * Differs from the kubelet in one point: exec, attach and port-forward ask for `create` also when they come as a
 * WebSocket GET, so that `get nodes/proxy` never runs a command. Undefined: a method that maps to no verb.
 */
export function nodeAttributes(method: string, root: string): NodeAttributes | undefined {
  const verb = ALWAYS_CREATE.has(root) ? 'create' : VERBS.get(method);
  return verb === undefined ? undefined : { verb, subresources: SUBRESOURCES.get(root) ?? PROXY };
}
