import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, isSeq, parseAllDocuments, type Document } from 'yaml';
import { repositoryRoot } from './repository.ts';

/** One rule of a role that is bound: what an account may do, where, and what for. */
export interface Right {
  /** `namespace/name` of the ServiceAccount. */
  account: string;
  /** The namespace; undefined: everywhere, and what is in no namespace. */
  namespace: string | undefined;
  apiGroups: readonly string[];
  /** With subresource: `pods/log`. */
  resources: readonly string[];
  /** Only these names; empty: all. */
  resourceNames: readonly string[];
  verbs: readonly string[];
  /** From the comments of the manifest. */
  why: string;
}

interface Rule {
  apiGroups: string[];
  resources: string[];
  resourceNames?: string[];
  verbs: string[];
}

interface Manifest {
  kind: string;
  metadata: { name: string; namespace?: string };
  rules?: Rule[];
  roleRef?: { kind: string; name: string };
  subjects?: { kind: string; name: string; namespace: string }[];
}

/**
 * The rights that RBAC manifests grant: every binding in `files` (below manifests/), with its role from there or from
 * `roles`. Roles that Kubernetes itself brings are left out.
 */
export function rightsOf(files: readonly string[], roles: readonly string[] = []): Right[] {
  const bindings = files.flatMap(documentsOf);
  const known = [...bindings, ...roles.flatMap(documentsOf)];
  return bindings.flatMap(({ manifest, comment }) => {
    const { roleRef, subjects = [], metadata } = manifest;
    if (roleRef === undefined) return [];
    const role = known.find(
      ({
        manifest: {
          kind,
          metadata: { name },
        },
      }) => kind === roleRef.kind && name === roleRef.name,
    );
    if (role === undefined) return [];
    return subjects.flatMap((subject) =>
      rulesOf(role.document, role.comment || comment).map(({ rule, why }) => ({
        account: `${subject.namespace}/${subject.name}`,
        namespace: manifest.kind === 'RoleBinding' ? metadata.namespace : undefined,
        apiGroups: rule.apiGroups,
        resources: rule.resources,
        resourceNames: rule.resourceNames ?? [],
        verbs: rule.verbs,
        why,
      })),
    );
  });
}

function documentsOf(file: string): { manifest: Manifest; document: Document.Parsed; comment: string }[] {
  const text = readFileSync(join(repositoryRoot(), 'manifests', file), 'utf8');
  return parseAllDocuments(text).map((document) => {
    const { contents } = document;
    const comment = document.commentBefore ?? (isMap(contents) ? contents.commentBefore : undefined);
    return { manifest: document.toJS() as Manifest, document, comment: oneLine(comment) };
  });
}

/** Each rule with its comment: its own, that of the rule before it, or that of the role. */
function rulesOf(document: Document.Parsed, comment: string): { rule: Rule; why: string }[] {
  const list = document.get('rules');
  if (!isSeq(list)) return [];
  let why = oneLine(list.commentBefore) || comment;
  return list.items.map((item) => {
    if (!isMap(item)) throw new Error('a rule is not a mapping');
    why = oneLine(item.commentBefore) || why;
    return { rule: item.toJSON() as Rule, why };
  });
}

function oneLine(comment: string | null | undefined): string {
  return (comment ?? '').replaceAll(/\s+/g, ' ').trim();
}
