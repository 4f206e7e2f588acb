import { createHash } from 'node:crypto';

/** What the mapping looks at; the `namespaces` part of a MemberCluster's spec. */
export interface NamespaceMapping {
  mapping: 'Same' | 'Prefixed' | 'Explicit';
  prefix?: string;
  explicit?: readonly { host: string; member: string }[];
}

const MAX_NAME = 63;
const HASH_LENGTH = 16;
const DNS_LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const SYSTEM_PREFIXES = ['kube-', 'openshift-'];
const SYSTEM_NAMES = ['openshift', 'spillway-system'];

/** Namespaces that belong to a cluster itself. They are neither taken from the host nor touched in a member. */
export function isSystemNamespace(name: string): boolean {
  return SYSTEM_NAMES.includes(name) || SYSTEM_PREFIXES.some((prefix) => name.startsWith(prefix));
}

/** The same question as a CEL expression over the variable `path`. */
export function systemNamespaceCel(path: string): string {
  const prefixes = SYSTEM_PREFIXES.map((prefix) => `${path}.startsWith('${prefix}')`);
  return [...prefixes, ...SYSTEM_NAMES.map((name) => `${path} == '${name}'`)].join(' || ');
}

/**
 * The namespace of the member that stands for `hostNamespace`, or the reason (for people) why there is none.
 * Different host namespaces never share one: a prefixed name of 63 characters or more is cut and ends in a hash of the
 * whole, and is then exactly 63 long, which no name that was left as it is can be.
 */
export function memberNamespaceFor(
  spec: NamespaceMapping,
  hostNamespace: string,
): { namespace: string } | { refused: string } {
  if (isSystemNamespace(hostNamespace)) {
    return { refused: `namespace ${hostNamespace} belongs to the cluster itself and is never mapped to a member` };
  }
  if (hostNamespace.length > MAX_NAME || !DNS_LABEL.test(hostNamespace)) {
    return { refused: `${JSON.stringify(hostNamespace)} is not the name of a namespace` };
  }
  if (spec.mapping === 'Prefixed') return prefixed(spec.prefix ?? '', hostNamespace);
  if (spec.mapping === 'Explicit') return explicit(spec.explicit ?? [], hostNamespace);
  return { namespace: hostNamespace };
}

/** The namespace of the host that a namespace of the member stands for; undefined: none, or its name was cut. */
export function hostNamespaceFor(spec: NamespaceMapping, memberNamespace: string): string | undefined {
  const found = candidateFor(spec, memberNamespace);
  if (found === undefined) return undefined;
  const mapped = memberNamespaceFor(spec, found);
  return 'namespace' in mapped && mapped.namespace === memberNamespace ? found : undefined;
}

function candidateFor(
  { mapping, prefix = '', explicit: pairs = [] }: NamespaceMapping,
  name: string,
): string | undefined {
  if (mapping === 'Same') return name;
  if (mapping === 'Explicit') return pairs.find(({ member }) => member === name)?.host;
  return name.startsWith(prefix) ? name.slice(prefix.length) : undefined;
}

function prefixed(prefix: string, hostNamespace: string): { namespace: string } | { refused: string } {
  if (prefix === '' || prefix.length > 30 || !/^[a-z0-9][-a-z0-9]*$/.test(prefix)) {
    return { refused: 'spec.namespaces.prefix is missing or not the beginning of a namespace name' };
  }
  const whole = prefix + hostNamespace;
  if (isSystemNamespace(whole)) return { refused: `${whole} would be a system namespace of the member` };
  if (whole.length < MAX_NAME) return { namespace: whole };
  const hash = createHash('sha256').update(whole).digest('hex').slice(0, HASH_LENGTH);
  return { namespace: `${whole.slice(0, MAX_NAME - HASH_LENGTH - 1)}-${hash}` };
}

function explicit(
  pairs: readonly { host: string; member: string }[],
  hostNamespace: string,
): { namespace: string } | { refused: string } {
  const pair = pairs.find(({ host }) => host === hostNamespace);
  if (pair === undefined) {
    return { refused: `namespace ${hostNamespace} is not listed in spec.namespaces.explicit` };
  }
  if (isSystemNamespace(pair.member)) {
    return { refused: `namespace ${pair.member} is a system namespace of the member and is never used` };
  }
  const sharing = pairs.filter(({ member }) => member === pair.member);
  if (sharing.length > 1) {
    return {
      refused: `spec.namespaces.explicit maps ${sharing.map(({ host }) => host).join(' and ')} to the same ${pair.member}`,
    };
  }
  return { namespace: pair.member };
}
