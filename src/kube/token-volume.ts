/** Whether a volume is named as the one with the token that ServiceAccount admission gives each pod, which has a name of its own in each. */
export function isNamedAsTokens(volume: string): boolean {
  return volume.startsWith('kube-api-access-');
}
