import type { FaultProxy, ProxiedRequest } from '../fixtures/fault-proxy.ts';

/** `before`: the request does not reach the API server; `after`: it is carried out, and its answer is kept back. */
export type Moment = 'before' | 'after';

/** One request that is held: what it was, once it has come so far. */
export interface HeldWrite {
  /** The name of the proxy and the request; undefined as long as it has not come. */
  readonly found: { readonly side: string; readonly request: ProxiedRequest } | undefined;
  /** What has not come is not held any more. */
  remove(): void;
}

/** Holds the `site`-th request from now on that matches, whichever of the proxies it comes to. `side`: the name of that one. */
export function holdNth(
  proxies: Readonly<Record<string, FaultProxy>>,
  matches: (request: ProxiedRequest, side: string) => boolean,
  site: number,
  when: Moment,
): HeldWrite {
  const fault = { kind: when === 'before' ? 'hang' : 'swallow' } as const;
  let count = 0;
  let found: HeldWrite['found'];
  const rules = Object.entries(proxies).map(([side, proxy]) => {
    let held: ProxiedRequest | undefined;
    const isNth = (request: ProxiedRequest): boolean => {
      if (!matches(request, side) || ++count !== site) return false;
      held = request;
      return true;
    };
    const rule = proxy.inject(fault, isNth, 1);
    void rule.hit().then(() => (found = held && { side, request: held }));
    return rule;
  });
  return {
    get found() {
      return found;
    },
    remove: () => {
      for (const rule of rules) rule.remove();
    },
  };
}
