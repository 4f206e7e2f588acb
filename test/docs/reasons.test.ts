import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { openApiSchema, type SchemaNode } from '../../src/api/crd.ts';
import { KINDS } from '../../src/api/kinds.ts';
import { STRATEGIES } from '../../src/descheduler/strategies.ts';

const PAGE = readFileSync('docs/reference/events.md', 'utf8');
/** Rooms whose reasons users meet. API refusals of the kubelet port speak HTTP instead. */
const ROOMS = [
  'src/pods',
  'src/dependents',
  'src/members',
  'src/nodes',
  'src/kube',
  'src/placement',
  'src/scheduler',
  'src/descheduler',
  'src/overrides',
  'src/budgets',
  'src/services',
  'src/multi-cluster',
];
/** What stands before a reason in code: a field, a choice, or what makes a hold, a refusal, an Event or a condition. */
const BEFORE = [
  '[rR]eason: ',
  'reason = .*\\? ',
  'state: ',
  "'Normal', ",
  "'Warning', ",
  '\\btype, ',
  '(?:refuse|say|stays|#hold|unready|new CredentialsError)\\(\\s*',
  '#tell\\(key, (?:step\\.)?pods, ',
  '(?:no|yes|unknown)\\(\\s*type,\\s*',
  "condition\\(\\s*'[A-Za-z]+',\\s*(?:true|false|'True'|'False'),\\s*",
  "\\[\\s*'(?:True|False|Unknown)',\\s*",
  '(?:True|False|Unknown): ',
].join('|');
const REASON = new RegExp(`(?:${BEFORE})'([A-Z][A-Za-z]+)'`, 'g');
/** Reasons of the Kubernetes API that are parsed or passed on, and those of the operator's own kubeconfig. */
const NOT_OURS = new Set([
  'FieldValueRequired',
  'FieldValueForbidden',
  'CredentialPluginFailed',
  'FileUnreadable',
  'NoCredentials',
  'Unschedulable',
]);
/** Why a cluster is no place for a pod: people get the words of each. */
const WORDS_ONLY = new Set(
  [...(textOf('src/placement/placement-refusal.ts').match(/RefusalReason =[^;]*;/)?.[0] ?? '').matchAll(/'(\w+)'/g)].map(
    ([, name = '']) => name,
  ),
);

function textOf(file: string): string {
  return readFileSync(file, 'utf8');
}

function filesOf(room: string): string[] {
  const names = readdirSync(room, { recursive: true, encoding: 'utf8' });
  return names.filter((name) => name.endsWith('.ts')).map((name) => join(room, name));
}

function isIn(text: string, reason: string): boolean {
  return new RegExp(`\\b${reason}\\b`).test(text);
}

/** What stands under a heading; nothing where there is none. */
function sectionOf(title: string): string {
  return PAGE.split(`\n## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
}

it('lists every reason that users can meet', () => {
  const missing = new Set<string>();
  for (const file of ROOMS.flatMap(filesOf)) {
    for (const [, reason = ''] of textOf(file).matchAll(REASON)) {
      if (NOT_OURS.has(reason) || WORDS_ONLY.has(reason)) continue;
      if (!isIn(PAGE, reason)) missing.add(`${reason} (${file})`);
    }
  }
  expect([...missing]).toEqual([]);
});

it('lists every reason of moves, and on workloads those of the Events that they get', () => {
  const found = Object.values(STRATEGIES);
  expect(found.flatMap(({ reason, heldReason }) => [reason, heldReason]).filter((reason) => !isIn(PAGE, reason))).toEqual([]);
  const workloads = sectionOf('Workloads');
  const onWorkloads = [...found.map(({ reason }) => reason), 'StateNotHandedOn'];
  expect(onWorkloads.filter((reason) => !isIn(workloads, reason))).toEqual([]);
});

/** Values of fields `reason` that a schema lists. */
function reasonsIn({ properties = {}, items }: SchemaNode): string[] {
  const own = (properties['reason']?.enum ?? []).map(String);
  const within = [...Object.values(properties), ...(items === undefined ? [] : [items])];
  return [...own, ...within.flatMap(reasonsIn)];
}

it('lists every reason that a status can have in the section of its kind', () => {
  const all = KINDS.flatMap(({ resource: { kind }, schema }) =>
    reasonsIn(openApiSchema(schema)).map((reason) => ({ kind, reason })),
  );
  expect(all.map(({ reason }) => reason)).toContain('ReferencedWorkloadNotFound');
  expect(all.filter(({ kind, reason }) => !isIn(sectionOf(`${kind}s`), reason))).toEqual([]);
});
