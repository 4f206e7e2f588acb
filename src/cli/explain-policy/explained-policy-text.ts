import { cleanText } from '../../kube/clean-text.ts';
import { counted } from '../../kube/counted.ts';
import { table } from '../table.ts';
import type { ExplainedFailover, ExplainedNamespace, ExplainedPolicy } from './explained-policy.ts';

/** Of one namespace, in bytes. */
const LONGEST_LINE = 600;

/** The policy for people. */
export function explainedPolicyText({
  policy,
  namespace,
  problems,
  warnings,
  clusters,
  workloads,
  notLabelled,
  failover,
}: ExplainedPolicy): string {
  const where = namespace === null ? '' : ` in ${namespace}`;
  if (problems.length > 0) {
    return `${policy}${where} cannot be used, and says nothing about any pod:\n${lines(problems)}`;
  }
  const places = table(clusters, [
    { name: 'CLUSTER', text: ({ cluster }) => cluster },
    {
      name: 'TIER',
      text: ({ tier, group }) => (tier === null ? undefined : group === null ? tier : `${group} ${tier}`),
    },
    { name: 'SAYS', text: ({ says }) => says },
  ]);
  const matched = table(workloads, [
    { name: 'NAMESPACE', text: (one) => one.namespace },
    { name: 'WORKLOAD', text: ({ workload }) => workload },
    { name: 'SAYS', text: ({ says }) => says },
    { name: 'WHERE', text: (one) => one.where ?? undefined },
  ]);
  const nothing = 'It matches no workload that is there now.\n';
  const odd = warnings.length === 0 ? '' : `\nNot consistent:\n${lines(warnings)}`;
  return `${policy}${where}\n\n${places}\n${workloads.length === 0 ? nothing : matched}${labelText(notLabelled)}${failover === null ? '' : movesText(failover)}${odd}`;
}

function labelText(namespaces: readonly ExplainedNamespace[]): string {
  if (namespaces.length === 0) return '';
  const each = namespaces.map(({ namespace, workloads: [first = '', ...others], fix }) => {
    const more = others.length === 0 ? '' : ` and ${counted(others.length, 'other workload')}`;
    return cleanText(`${namespace} (${first}${more}): ${fix}`, LONGEST_LINE);
  });
  return `\nNamespace not labelled: its pods do not tolerate the taint of virtual nodes, and stay in this cluster. To change that for those that are made afterwards:\n${lines(each)}`;
}

function movesText({ owners, causes, leaving, handedOn }: ExplainedFailover): string {
  const byOwner = table(owners, [
    { name: 'PODS OF', text: ({ pods }) => pods },
    { name: 'MEMBER LOST', text: ({ memberLost }) => memberLost },
    { name: 'OUT OF SERVICE', text: ({ outOfService }) => outOfService },
    { name: 'TAINTED OR DRAINED', text: ({ tainted }) => tainted },
  ]);
  const others = table(causes, [
    { name: 'WHEN ELSE', text: ({ cause }) => cause },
    { name: 'SAYS', text: ({ says }) => says },
  ]);
  return `\nPods in members, where another cluster takes the one that comes instead:\n\n${byOwner}\n${others}\n${leaving}\n${handedOn === null ? '' : `${handedOn}\n`}`;
}

function lines(texts: readonly string[]): string {
  return texts.map((text) => `  ${text}\n`).join('');
}
