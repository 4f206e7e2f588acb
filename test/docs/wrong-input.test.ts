import { expect, it } from 'vitest';
import { WRONG_POLICIES } from '../placement/wrong-policies.ts';
import { WRONG_SCORES } from '../placement/wrong-scores.ts';

const code = (text: string): string => `\`${text.replaceAll('|', '\\|')}\``;
const table = (head: string, rows: readonly (readonly [string, string])[]): string[] => [
  `| ${head} | refused with |`,
  '|---|---|',
  ...rows.map(([what, words]) => `| ${what} | ${code(words)} |`),
  '',
];

/** Made of what the tests apply to a real API server. Brought up to date by `vitest -u`. */
it('the page of wrong input lists every wrong policy with what is said about it', async () => {
  const page = [
    '<!-- Made of the tables of the tests (test/docs/wrong-input.test.ts). Do not edit. -->',
    '# Wrong input',
    '',
    'What is refused when it is applied, and how the message begins. The schemas of the kinds refuse it, without any server of',
    'Spillway; rows marked * need `manifests/admission/validation.yaml`, which refuses wrong [annotations and',
    'labels](../guides/admission.md#refusing-what-cannot-be-meant) too. Annotations of Federation v1 are not refused: an',
    '[Event](events.md#workloads) tells what is wrong with them.',
    '',
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
    'OverridePolicies: see the rules at the end of [their page](override-policy.md).',
    '',
  ].join('\n');
  await expect(page).toMatchFileSnapshot('../../docs/reference/wrong-input.md');
});
