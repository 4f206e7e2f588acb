/** Levels of Pod Security Standards, the one that allows most first. */
export const POD_SECURITY_LEVELS = ['privileged', 'baseline', 'restricted'] as const;
export type PodSecurityLevel = (typeof POD_SECURITY_LEVELS)[number];

/** Label of a namespace by which Pod Security admission refuses pods. */
export const ENFORCE_LABEL = 'pod-security.kubernetes.io/enforce';

/** The level that a namespace sets for its pods; undefined: none, or none that Kubernetes knows. */
export function enforcedLevel(labels: Readonly<Record<string, string>> | undefined): PodSecurityLevel | undefined {
  const value = labels?.[ENFORCE_LABEL];
  return POD_SECURITY_LEVELS.find((level) => level === value);
}
