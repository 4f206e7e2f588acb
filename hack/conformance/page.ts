import type { Comparison, LeftOut } from './comparison.ts';
import type { Outcome } from './report.ts';

export interface Findings {
  /** Of the code: `0.1.0 (7e42537)`. */
  version: string;
  /** Of the suite and of the member, as go.mod pins it. */
  kubernetes: string;
  /** `containerd 1.6.20`. */
  runtime: string;
  comparison: Comparison;
  leftOut: readonly LeftOut[];
  /** Images that are not as the suite has them, in words. */
  gaps: readonly string[];
  virtualKubelet: { version: string; outcomes: readonly Outcome[] };
}

/** Whether nothing fails through the virtual node that passes elsewhere; a run of nothing is no proof. */
export function isConformant({ comparison, virtualKubelet }: Findings): boolean {
  const { outcomes } = virtualKubelet;
  const others = outcomes.length > 0 && outcomes.every(({ state }) => state === 'passed');
  return others && comparison.broken.length === 0 && comparison.passed.length > 0;
}

/** docs/conformance.md. It depends on the code and how specs ended, not on how long they took: two runs of the same are alike. */
export function conformancePage(findings: Findings): string {
  const { version, kubernetes, runtime, comparison: c, leftOut, gaps, virtualKubelet } = findings;
  const direct = c.passed.length + c.broken.length;
  const virtual = c.passed.length + c.better.length;
  return `# Conformance

Written by \`make conformance\`, which takes about half an hour, with version ${version}. Do not edit.

Two suites that others wrote are run against a virtual node. Neither is changed.

## The Kubernetes e2e suite

The conformance specs of sig-node from Kubernetes ${kubernetes} run on a member cluster with one real kubelet (${runtime}), and
then on a host whose only node is the virtual node of that member. All images are made from local files; their names are
repointed, as for any cluster without a registry. A spec that fails is tried once more.

| | on the member | through the virtual node |
|---|---|---|
| passed | ${direct} | ${virtual} |
| failed | ${c.failed.filter(({ direct: one }) => one.state === 'failed').length + c.better.length} | ${c.broken.length + c.failed.length} |
| skipped by themselves | ${c.skipped.length} | ${c.skipped.length} |
| left out | ${leftOut.length} | ${leftOut.length} |

${verdict(c)}
${section('Failing through the virtual node only', c.broken.map(withMessage))}${section(
    'Failing on both',
    c.failed.map(({ direct: one, virtual: other }) => withMessage(one.state === 'failed' ? one : other)),
  )}${section('Failing on the member only', c.better.map(item))}${section(
    'Skipped by themselves',
    c.skipped.map(withMessage),
  )}${section(
    'Left out',
    leftOut.map(({ pattern, reason }) => `- ${clean(pattern)}: ${reason}`),
  )}${section(
    'Passed at the second attempt',
    c.unsteady.map(({ name, where }) => `${item(name)} (on ${where})`),
  )}${section(
    'Images that are not as the suite has them',
    gaps.map((gap) => `- ${gap}`),
  )}${section('Passed on both', c.passed.map(item))}
## virtual-kubelet's own suite

The end-to-end suite of virtual-kubelet ${virtualKubelet.version}, which its providers have to pass, against the same virtual node.

| test | result |
|---|---|
${virtualKubelet.outcomes.map(({ name, state }) => `| ${name.replace(/^.*\//, '')} | ${state} |`).join('\n')}

Its fixture: an override policy gives the containers of its pods, whose images exist nowhere, one that does; a Pod object of the virtual
node's name stands for the process of the node, and in front of the node's port a proxy, at the address of that pod, presents a certificate that
may read metrics, because the suite asks anonymously.
`;
}

function verdict({ broken }: Comparison): string {
  return broken.length === 0
    ? 'Nothing that passes on the member fails through the virtual node.'
    : `**${broken.length} that pass on the member fail through the virtual node.**`;
}

function section(title: string, lines: readonly string[]): string {
  return lines.length === 0 ? '' : `\n### ${title}\n\n${lines.join('\n')}\n`;
}

function item(name: string): string {
  return `- ${clean(name)}`;
}

function withMessage({ name, message }: Outcome): string {
  return `${item(name)}: ${clean(firstLine(message))}`;
}

/** Words of the suite, safe in Markdown, on one line and without what differs from run to run. */
function clean(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/[<>|`*_]/g, (character) => `\\${character}`)
    .slice(0, 300);
}

function firstLine(text: string): string {
  return text.split('\n')[0] ?? '';
}
