import { expect, it } from 'vitest';
import { FOREIGN_SELECTORS, WRONG_MARKS, WRONG_TAINTS } from '../admission/wrong-objects.ts';
import { NAME_REFUSAL, WRONG_MEMBER_NAMES, WRONG_MEMBERS } from '../api/wrong-members.ts';
import { WRONG_MIGRATIONS } from '../api/wrong-migrations.ts';
import { WRONG_MODES } from '../api/wrong-modes.ts';
import { WRONG_REBALANCERS } from '../api/wrong-rebalancers.ts';
import { WRONG_OVERRIDES } from '../overrides/wrong-overrides.ts';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';
import { WRONG_SCORES } from '../placement/wrong-scores.ts';
import { WRONG_TAINT_POLICIES } from '../placement/wrong-taint-policies.ts';
import { WRONG_CONFIGURATIONS } from '../wrong-configurations.ts';

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
const table = (
  head: string,
  rows: readonly (readonly [what: string, words: string])[],
  answer = 'refused with',
): string[] => [
  `| ${head} | ${answer} |`,
  '|---|---|',
  ...rows.map(([what, words]) => `| ${what} | ${code(words)} |`),
  '',
];
const [, foreignOverride] = FOREIGN_SELECTORS;

/** Made of what the tests apply to a real API server. Brought up to date by `vitest -u`. */
it('the page of wrong input lists everything wrong that tests apply, with what is said about it', async () => {
  const page = [
    '<!-- Made of the tables of the tests (test/docs/wrong-input.test.ts). Do not edit. -->',
    '# Wrong input',
    '',
    'What is refused when it is applied, and the part of the message that says why. The schemas of the kinds refuse it, without',
    'any server of Spillway; rows marked * need `manifests/admission/validation.yaml`, which refuses wrong [annotations and',
    'labels](../guides/admission.md#refusing-what-cannot-be-meant) too. Annotations of Federation v1 are not refused: an',
    '[Event](events.md#workloads) tells what is wrong with them. What only members can know, a pod or a MemberCluster tells:',
    '[conditions, Events and reasons](events.md).',
    '',
    '## MemberCluster',
    '',
    ...table('a member with', [
      ...WRONG_MEMBERS.map(([what, , words]) => [what, words] as const),
      ...WRONG_MEMBER_NAMES.map((name) => [name.length > 40 ? `a name of ${name.length} characters` : `the name ${code(name)}`, NAME_REFUSAL] as const),
    ]),
    '## PlacementPolicy and ClusterPlacementPolicy',
    '',
    ...table(
      'a policy with',
      WRONG_POLICIES.map(({ what, field, refusal }) => [refusal === undefined ? `${what} *` : what, refusal ?? field]),
    ),
    '## PlacementScore',
    '',
    ...table(
      'a score with',
      WRONG_SCORES.map(({ what, refusal }) => [what, refusal]),
    ),
    '## ClusterTaintPolicy',
    '',
    ...table(
      'a policy with',
      WRONG_TAINT_POLICIES.map(({ what, refusal }) => [what, refusal]),
    ),
    '## WorkloadRebalancer',
    '',
    ...table(
      'a rebalancer with',
      WRONG_REBALANCERS.map(({ what, refusal }) => [what, refusal]),
    ),
    '## WorkloadMigration',
    '',
    ...table(
      'a migration with',
      WRONG_MIGRATIONS.map(({ what, refusal }) => [what, refusal]),
    ),
    '## OverridePolicy and ClusterOverridePolicy',
    '',
    'What follows from the rules at the end of [their page](override-policy.md):',
    '',
    ...table('a policy with', [
      ...WRONG_OVERRIDES.map(([what, , words]) => [what, words] as const),
      ['a selector for another namespace *', foreignOverride?.[2] ?? ''],
    ]),
    '## Annotations and labels',
    '',
    'On MemberClusters, namespaces and pods. All of these need `manifests/admission/validation.yaml`.',
    '',
    ...table(
      'what is applied',
      WRONG_MARKS.map(([what, , words]) => [what, words]),
    ),
    '## Taints of virtual nodes',
    '',
    'On a virtual node a taint of effect NoExecute would end all pods there at once, and one of a key of ours that there is not, or a',
    'drain that keeps no new pods away, would empty nothing. `manifests/admission/node-taints.yaml` refuses them; what is done',
    '[instead](../concepts/failover.md#by-hand-it-is-refused).',
    '',
    ...table(
      'after `kubectl taint node`',
      WRONG_TAINTS.map(([node, taint, words]) => [code(`${node} ${taint}`), words] as const),
    ),
    '## Service account modes',
    '',
    'Which [modes](../concepts/service-accounts.md) there are, their member decides: such a pod is created, stays Pending, and',
    'starts when it is put right.',
    '',
    ...table(
      'a pod that asks for',
      WRONG_MODES.map(([what, , , reason, words]) => [what, `${reason}: ${words}`]),
      'held with',
    ),
    '## Configuration of the manager',
    '',
    'With such a file (`--config`) the manager does not start. `spillway config check --config FILE` says it before, and the schema of the',
    'Helm chart refuses the same settings below `config`.',
    '',
    ...table(
      'a file with',
      WRONG_CONFIGURATIONS.map(([what, , words]) => [what, words] as const),
    ),
  ]
    .join('\n');
  await expect(page).toMatchFileSnapshot('../../docs/reference/wrong-input.md');
});
