/** A caller, as Kubernetes' authentication.k8s.io/v1 UserInfo describes one. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: ReadonlyMap<string, readonly string[]>;
}

const AUTHENTICATED = 'system:authenticated';

/** Every known caller is in `system:authenticated`, as Kubernetes' own group adder has it. */
export function withAuthenticatedGroup(groups: readonly string[]): readonly string[] {
  return groups.includes(AUTHENTICATED) ? groups : [...groups, AUTHENTICATED];
}
