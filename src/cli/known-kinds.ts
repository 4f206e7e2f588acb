import { groupVersionOf } from '../kube/group-version.ts';
import { type Resource, resourceOf } from '../kube/resource.ts';
import type { ManifestObject } from './manifests.ts';

/** Plural by group and kind, of all that manifests/ has; those in no namespace are marked. */
const KINDS: Readonly<Record<string, Readonly<Record<string, readonly [plural: string, namespaced: boolean]>>>> = {
  '': {
    Namespace: ['namespaces', false],
    ServiceAccount: ['serviceaccounts', true],
    ConfigMap: ['configmaps', true],
    Secret: ['secrets', true],
    Service: ['services', true],
    ResourceQuota: ['resourcequotas', true],
  },
  apps: { Deployment: ['deployments', true] },
  'networking.k8s.io': { NetworkPolicy: ['networkpolicies', true] },
  policy: { PodDisruptionBudget: ['poddisruptionbudgets', true] },
  'storage.k8s.io': { CSIDriver: ['csidrivers', false], StorageClass: ['storageclasses', false] },
  'apiextensions.k8s.io': { CustomResourceDefinition: ['customresourcedefinitions', false] },
  'rbac.authorization.k8s.io': {
    ClusterRole: ['clusterroles', false],
    ClusterRoleBinding: ['clusterrolebindings', false],
    Role: ['roles', true],
    RoleBinding: ['rolebindings', true],
  },
  'admissionregistration.k8s.io': {
    ValidatingAdmissionPolicy: ['validatingadmissionpolicies', false],
    ValidatingAdmissionPolicyBinding: ['validatingadmissionpolicybindings', false],
    MutatingAdmissionPolicy: ['mutatingadmissionpolicies', false],
    MutatingAdmissionPolicyBinding: ['mutatingadmissionpolicybindings', false],
    MutatingWebhookConfiguration: ['mutatingwebhookconfigurations', false],
  },
  'spillway.dev': { MemberCluster: ['memberclusters', false] },
};

/** Where objects of that kind are. Throws for a kind that no manifest has. */
export function knownResource({ apiVersion, kind }: Pick<ManifestObject, 'apiVersion' | 'kind'>): Resource {
  const [plural, namespaced] = KINDS[groupVersionOf(apiVersion).group]?.[kind] ?? [];
  if (plural === undefined || namespaced === undefined) throw new Error(`no manifest has a ${kind} of ${apiVersion}`);
  return resourceOf(apiVersion, kind, plural, namespaced);
}

export const CUSTOM_RESOURCE_DEFINITIONS = knownResource({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
});

/** As kubectl names it: `deployment.apps/spillway-manager`. */
export function nameOf(object: ManifestObject): string {
  const { group, kind } = knownResource(object);
  return `${kind.toLowerCase()}${group === '' ? '' : `.${group}`}/${object.metadata.name}`;
}
