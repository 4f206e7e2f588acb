/** How many evictions one member may grant of the pods of a budget, and whether a node there is being drained of them. */
export interface Claim {
  readonly allowed: number;
  readonly draining: boolean;
}

/** By member, in the order in which they are served. Written on the budget itself, so that all replicas share one truth. */
export type Claims = ReadonlyMap<string, Claim>;

/** Longest text that is read, in characters: the annotation is ours, but others may write it. */
const LONGEST = 16_384;
/** A member that drains a node holds the last eviction for so long while others wait for one, in ms. */
const TURN_MS = 60_000;
/** Claims may be more than the host allows for so long before somebody gives way, in ms: pods that restart are back by then. */
const OVER_MS = 30_000;

/** What is not understood is left out: who had a claim narrows its budget, and claims anew. */
export function parseClaims(text: string | undefined): Claims {
  const claims = new Map<string, Claim>();
  if (text === undefined || text.length > LONGEST) return claims;
  for (const [member, claim] of entriesOf(text)) {
    if (typeof claim !== 'object' || claim === null) continue;
    const { allowed, draining } = claim as Partial<Record<keyof Claim, unknown>>;
    if (!Number.isSafeInteger(allowed) || (allowed as number) < 0) continue;
    claims.set(member, { allowed: allowed as number, draining: draining === true });
  }
  return claims;
}

function entriesOf(text: string): [string, unknown][] {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? Object.entries(parsed) : [];
  } catch {
    return [];
  }
}

/** The annotation; undefined: none. */
export function formatClaims(claims: Claims): string | undefined {
  if (claims.size === 0) return undefined;
  const parts = [...claims].map(([member, { allowed, draining }]) => {
    return `${JSON.stringify(member)}:{"allowed":${allowed}${draining ? ',"draining":true' : ''}}`;
  });
  return `{${parts.join(',')}}`;
}

/**
 * Evictions that the member may have under way or still grant, of the `allowed` ones of the host: what the claims of all others
 * leave, and no more than its own. So all members together never have more than `allowed`, also where claims are more than that.
 */
export function allowanceOf(claims: Claims, member: string, allowed: number): number {
  const own = claims.get(member)?.allowed ?? 0;
  return Math.min(own, Math.max(0, allowed - claimedByOthers(claims, member)));
}

export interface ClaimFacts {
  member: string;
  claims: Claims;
  /** As the host says now. */
  allowed: number;
  /** Its pods in the member, and in all. */
  pods: number;
  expected: number;
  draining: boolean;
  /** Disruptions there that the host has not counted yet: until then nobody else may have what they took. */
  used: number;
  /** Since when, in ms, another member waits for the last eviction; 0: none does. */
  waitedMs: number;
  /** Since when, in ms, claims are more than the host allows; 0: they are not. */
  overMs: number;
}

/** The claims as the member would have them; the same object when they are good as they are. */
export function nextClaims(facts: ClaimFacts): Claims {
  const { member, claims, draining, used } = facts;
  const own = claims.get(member);
  const wanted = facts.pods === 0 ? 0 : draining ? whileDraining(facts) : otherwise(facts);
  const allowed = Math.max(wanted, Math.min(own?.allowed ?? 0, used));
  const isNone = allowed === 0 && (facts.pods === 0 || !draining);
  if (isNone && own === undefined) return claims;
  if (!isNone && own !== undefined && own.allowed === allowed && own.draining === draining) return claims;
  const next = new Map(claims);
  // Whoever gives up the last one is served after those who wait.
  if (isNone || (own !== undefined && own.allowed > 0 && allowed === 0)) next.delete(member);
  if (!isNone) next.set(member, { allowed, draining });
  return next;
}

function whileDraining(facts: ClaimFacts): number {
  const { member, claims, allowed, pods, waitedMs } = facts;
  const own = claims.get(member)?.allowed ?? 0;
  const left = allowed - claimedByOthers(claims, member);
  const room = left - waiting(claims, member).length;
  if (own > 0 && isWaitedFor(claims, member)) return Math.min(own, Math.max(room, waitedMs >= TURN_MS ? 0 : 1));
  const names = [...claims.keys()];
  const turn = names.includes(member) ? names.indexOf(member) : names.length;
  const before = waiting(claims, member).filter((other) => names.indexOf(other) < turn).length;
  return Math.max(own, Math.min(pods, own > 0 ? room : left - before));
}

function otherwise(facts: ClaimFacts): number {
  const { member, claims, allowed, pods, expected, overMs } = facts;
  const own = claims.get(member)?.allowed ?? 0;
  const left = allowed - claimedByOthers(claims, member);
  const room = Math.max(0, left - waiting(claims, member).length);
  if (isWaitedFor(claims, member)) return Math.min(own, room);
  if (overMs >= OVER_MS && own > left && isLast(claims, member)) return Math.max(0, left);
  const share = Math.max(1, Math.floor((allowed * pods) / Math.max(1, expected)));
  return Math.max(own, Math.min(room, share, pods));
}

/** Whether another member drains a node and has none: one that does not drain gives way at once. */
export function isWaitedFor(claims: Claims, member: string): boolean {
  return waiting(claims, member).length > 0;
}

export function claimed(claims: Claims): number {
  let sum = 0;
  for (const { allowed } of claims.values()) sum += allowed;
  return sum;
}

function claimedByOthers(claims: Claims, member: string): number {
  return claimed(claims) - (claims.get(member)?.allowed ?? 0);
}

function waiting(claims: Claims, member: string): string[] {
  return [...claims].flatMap(([name, { allowed, draining }]) =>
    name !== member && draining && allowed === 0 ? [name] : [],
  );
}

/** Of those that have any. */
function isLast(claims: Claims, member: string): boolean {
  return [...claims].findLast(([, { allowed }]) => allowed > 0)?.[0] === member;
}
