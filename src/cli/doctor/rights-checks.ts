import type { KubeObject } from '../../kube/object.ts';
import { someOf } from '../../kube/some-of.ts';
import { failed, ok, warning, type Finding } from './finding.ts';
import type { Manifest } from './manifests.ts';

const RIGHTS = 'reference/rights.md';
/** More missing rights than these are counted only. */
const MOST_NAMED = 6;
/** Keeps people from something, not the manager. */
export const NODE_TAINTS = 'admission/node-taints.yaml';

/** One right of an account, in the words of a SubjectAccessReview. */
export interface Right {
  /** As the API server knows it. */
  user: string;
  verb: string;
  group: string;
  resource: string;
  subresource: string;
  /** '' for all names. */
  name: string;
  /** '' for everywhere. */
  namespace: string;
}

/** All rights that the bindings in some manifests grant, each by itself. Roles of Kubernetes itself are left out. */
export function rightsIn(manifests: readonly Manifest[]): Right[] {
  return manifests.flatMap(({ roleRef, subjects = [], kind, metadata }) => {
    if (roleRef === undefined) return [];
    const role = manifests.find((one) => one.kind === roleRef.kind && one.metadata.name === roleRef.name);
    const namespace = kind === 'RoleBinding' ? (metadata.namespace ?? '') : '';
    return subjects
      .filter((subject) => subject.kind === 'ServiceAccount')
      .flatMap((subject) => {
        const user = `system:serviceaccount:${subject.namespace}:${subject.name}`;
        return (role?.rules ?? []).flatMap(({ apiGroups, resources, resourceNames = [''], verbs }) =>
          apiGroups.flatMap((group) =>
            resources.flatMap((path) => {
              const [resource = '', subresource = ''] = path.split('/');
              return resourceNames.flatMap((name) =>
                verbs.map((verb) => ({ user, verb, group, resource, subresource, name, namespace })),
              );
            }),
          ),
        );
      });
  });
}

/** @param file below manifests/; `refused`: those of its rights that the accounts do not have */
export function rightsGranted(file: string, asked: number, refused: readonly Right[]): Finding {
  const check = 'rights';
  if (refused.length === 0) return ok(check, `manifests/${file}: all ${asked} are granted`);
  return failed(
    check,
    `the manager may not ${someOf(refused.map(inWords), MOST_NAMED)}`,
    `kubectl apply -f manifests/${file}`,
    RIGHTS,
  );
}

/** Who moves no pods does without these rights; but what is to move them waits then, without a word in its status. */
export function movesGranted(granted: Finding): Finding {
  if (granted.verdict === 'ok') return granted;
  const says = `pods are not moved (by migrations, rebalancing, failover, drain): ${granted.says}`;
  return { ...granted, verdict: 'warning', says };
}

function inWords({ verb, group, resource, subresource, namespace }: Right): string {
  const path = subresource === '' ? resource : `${resource}/${subresource}`;
  return `${verb} ${group === '' ? path : `${path}.${group}`}${namespace === '' ? '' : ` in ${namespace}`}`;
}

/** Policies of the API server that hold the manager to its task, and people off virtual nodes, by file below manifests/. */
export function guardsPresent(
  files: ReadonlyMap<string, readonly Manifest[]>,
  found: { policies: readonly KubeObject[]; bindings: readonly KubeObject[] },
): Finding[] {
  const check = 'guards';
  const names = {
    ValidatingAdmissionPolicy: new Set(found.policies.map(({ metadata }) => metadata.name)),
    ValidatingAdmissionPolicyBinding: new Set(found.bindings.map(({ metadata }) => metadata.name)),
  };
  const findings = [...files].flatMap(([file, manifests]): Finding[] => {
    const missing = manifests.flatMap(({ kind, metadata }) =>
      (kind === 'ValidatingAdmissionPolicy' || kind === 'ValidatingAdmissionPolicyBinding') &&
      !names[kind].has(metadata.name)
        ? [`${kind} ${metadata.name}`]
        : [],
    );
    if (missing.length === 0) return [];
    const says = `not there: ${missing.join(', ')}`;
    const fix = `kubectl apply -f manifests/${file}`;
    return [file === NODE_TAINTS ? taintsUnguarded(says, fix) : failed(check, says, fix, 'security.md')];
  });
  return findings.length > 0 ? findings : [ok(check, 'the policies that hold the manager to its task are there')];
}

/** Everything works without it, and somebody may have meant it. */
function taintsUnguarded(says: string, fix: string): Finding {
  const what =
    'kubectl taint with effect NoExecute is taken on virtual nodes, and has Kubernetes delete all pods there at once';
  return warning('guards', `${what} (${says})`, fix, 'concepts/failover.md');
}

/** Namespaces that opted in need somebody who gives their pods what they need to leave. @param defaulting whether anybody does */
export function defaultingPresent(bursting: readonly string[], defaulting: boolean): Finding[] {
  const check = 'admission';
  if (bursting.length === 0) return [];
  if (defaulting) return [ok(check, 'pods of namespaces with label spillway.dev/burst get their toleration')];
  return [
    warning(
      check,
      `pods of ${bursting.slice(0, 3).join(', ')} get no toleration of virtual nodes when they are created: only those go there that bring it`,
      'kubectl apply -f manifests/admission/pod-defaults.yaml (Kubernetes 1.36), or run the webhook',
      'guides/admission.md',
    ),
  ];
}
