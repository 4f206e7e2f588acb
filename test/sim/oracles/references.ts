import type { SimObject } from '../sim-cluster.ts';

export interface Reference {
  readonly kind: 'ConfigMap' | 'Secret';
  readonly name: string;
  readonly optional: boolean;
}

interface Referring {
  volumes?: {
    configMap?: { name?: string; optional?: boolean };
    secret?: { secretName?: string; optional?: boolean };
  }[];
  containers?: { envFrom?: { configMapRef?: { name?: string; optional?: boolean } }[] }[];
  imagePullSecrets?: { name: string }[];
}

/** What pods of the simulator refer to: the ways that `actors/dependents.ts` knows, read without the program's help. */
export function referencesOf(pod: SimObject): Reference[] {
  const { volumes = [], containers = [], imagePullSecrets = [] } = pod['spec'] as Referring;
  const found: { kind: 'ConfigMap' | 'Secret'; name: string | undefined; optional: boolean | undefined }[] = [
    ...volumes.map(({ configMap }) => ({
      kind: 'ConfigMap' as const,
      name: configMap?.name,
      optional: configMap?.optional,
    })),
    ...volumes.map(({ secret }) => ({ kind: 'Secret' as const, name: secret?.secretName, optional: secret?.optional })),
    ...containers
      .flatMap(({ envFrom = [] }) => envFrom)
      .map(({ configMapRef }) => ({
        kind: 'ConfigMap' as const,
        name: configMapRef?.name,
        optional: configMapRef?.optional,
      })),
    ...imagePullSecrets.map(({ name }) => ({ kind: 'Secret' as const, name, optional: true })),
  ];
  return found.flatMap(({ kind, name, optional = false }) => (name === undefined ? [] : [{ kind, name, optional }]));
}

export function refersTo(pod: SimObject, kind: string, name: string): boolean {
  return referencesOf(pod).some((one) => one.kind === kind && one.name === name);
}
