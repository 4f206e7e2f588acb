/** Of `v1` or `group/version`, as objects carry it in `apiVersion`. Kubernetes' first kinds have no group: `''`. */
export function groupVersionOf(apiVersion: string): { readonly group: string; readonly version: string } {
  const slash = apiVersion.indexOf('/');
  return { group: slash < 0 ? '' : apiVersion.slice(0, slash), version: apiVersion.slice(slash + 1) };
}
