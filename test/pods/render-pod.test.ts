import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import { identitiesOfPod } from '../../src/overrides/owners.ts';
import { type PodPolicies, renderPod } from '../../src/pods/render-pod.ts';
import { CONTEXT, frozen } from '../fixtures/translation.ts';
import { EAST, policy, rendered, webPod } from '../overrides/rendered-pod.ts';

function inputs(policies: OverridePolicy[] = [], more: Partial<PodPolicies> = {}): PodPolicies {
  return { policies, owners: identitiesOfPod(webPod()), member: EAST, pool: {}, ...more };
}
const forAll = (overriders: object, selectors: object[] = []) =>
  policy('ClusterOverridePolicy', 'all', { resourceSelectors: selectors, overrideRules: [{ overriders }] });
const MORE = forAll({
  resourcesOverrider: [{ operator: 'add', containerName: 'app', requests: { cpu: '2' } }],
  nodeSelectorOverrider: [{ operator: 'add', value: { disk: '${member.region}' } }],
});

describe('a pod as it will be in a member', () => {
  it('is the translated one where there are no policies', () => {
    expect(renderPod(webPod(), CONTEXT, inputs([], { owners: undefined }))).toEqual({
      pod: rendered(),
      record: undefined,
    });
  });

  it('has what policies change in the requests and constraints of its node', () => {
    const outcome = renderPod(frozen(webPod()), CONTEXT, inputs([MORE]));
    expect(outcome).toMatchObject({
      pod: { spec: { nodeSelector: { disk: 'eu-1' }, containers: [{ resources: { requests: { cpu: '2' } } }, {}] } },
      record: expect.stringContaining('ClusterOverridePolicy all') as string,
    });
  });

  it('cannot be told before the owners are known that a policy chooses by, and only then', () => {
    const by = (selector: object) => forAll({ labelsOverrider: [{ operator: 'add', value: { a: 'b' } }] }, [selector]);
    const unread = { owners: undefined };
    const web = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web' };
    const outcome = (selector: object, more = {}) => renderPod(webPod(), CONTEXT, inputs([by(selector)], more));
    expect(renderPod(webPod(), CONTEXT, inputs([MORE], unread))).toHaveProperty('pod');
    // The pod itself tells the name of its Deployment, but not its labels, nor what is above it.
    expect(outcome(web, unread)).toMatchObject({ pod: { metadata: { labels: { a: 'b' } } } });
    expect(outcome({ apiVersion: 'batch/v1', kind: 'CronJob' }, unread)).toHaveProperty('pod');
    expect(outcome({ apiVersion: 'example.com/v1', kind: 'App' }, unread)).toHaveProperty('unknown');
    const labelled = { apiVersion: 'apps/v1', kind: 'Deployment', labelSelector: { matchLabels: { team: 'a' } } };
    expect(outcome(labelled, unread)).toHaveProperty('unknown');
    const [self, ...above] = identitiesOfPod(webPod());
    const owners = [self, ...above.map((one) => ({ ...one, labels: { team: 'a' } }))];
    expect(outcome(labelled, { owners })).toMatchObject({ pod: { metadata: { labels: { a: 'b' } } } });
    expect(outcome(labelled)).toMatchObject({ hold: { reason: 'OverrideRefused' } });
    const ofJob = webPod();
    ofJob.metadata.ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name: 'a', uid: 'u', controller: true }];
    const cron = by({ apiVersion: 'batch/v1', kind: 'CronJob' });
    expect(renderPod(ofJob, CONTEXT, inputs([cron], unread))).toHaveProperty('unknown');
  });

  it('is none where translation or a policy refuses it', () => {
    const bad = forAll({ plaintext: [{ path: '/spec/containers/7', operator: 'remove' }] });
    expect(renderPod(webPod(), CONTEXT, inputs([bad]))).toMatchObject({
      hold: {
        reason: 'OverrideRefused',
        message: expect.stringMatching(
          /^ClusterOverridePolicy all, .*\/spec\/containers\/7: .* cluster "east"/,
        ) as string,
      },
    });
    const attached = webPod({ resourceClaims: [{ name: 'gpu', resourceClaimName: 'gpu' }] });
    expect(renderPod(attached, CONTEXT, inputs([MORE]))).toHaveProperty('hold');
  });

  it('has no files of the node that the member does not allow, also from an administrator of policies', () => {
    const value = { name: 'logs', hostPath: { path: '/var/log' } };
    const logs = forAll({ plaintext: [{ path: '/spec/volumes', operator: 'add', value: [value] }] });
    const allowing = (prefix: string) => ({ hostPath: { policy: 'Allow' as const, allowedPrefixes: [prefix] } });
    expect(renderPod(webPod(), { ...CONTEXT, ...allowing('/var/log') }, inputs([logs]))).toMatchObject({
      pod: { spec: { volumes: [value] } },
    });
    for (const more of [{}, allowing('/var/lo')]) {
      expect(renderPod(webPod(), { ...CONTEXT, ...more }, inputs([logs]))).toMatchObject({
        hold: { reason: 'HostPathNotAllowed', message: expect.stringContaining('"/var/log"') as string },
      });
    }
  });

  it('keeps away from excluded nodes, whatever a policy writes in the place of its affinity', () => {
    const context = { ...CONTEXT, excludedNodes: { infra: 'true' } };
    const no = { key: 'infra', operator: 'NotIn', values: ['true'] };
    const terms = (nodeSelectorTerms: object[]) => ({
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } },
    });
    const fast = { key: 'fast', operator: 'Exists' };
    const affinityWith = (operation: object) => {
      const outcome = renderPod(webPod(), context, inputs([forAll({ plaintext: [operation] })]));
      if (!('pod' in outcome)) throw new Error(JSON.stringify(outcome));
      return outcome.pod.spec.affinity;
    };
    const path = '/spec/affinity';
    expect(affinityWith({ path, operator: 'remove' })).toEqual(terms([{ matchExpressions: [no] }]));
    expect(affinityWith({ path, operator: 'replace', value: terms([{ matchExpressions: [fast] }]) })).toEqual(
      terms([{ matchExpressions: [fast, no] }]),
    );
    // One that the policy left as it was is not narrowed twice.
    const term = `${path}/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms/-`;
    expect(affinityWith({ path: term, operator: 'add', value: { matchExpressions: [fast] } })).toEqual(
      terms([{ matchExpressions: [no] }, { matchExpressions: [fast, no] }]),
    );
    expect(affinityWith({ path: '/spec/hostname', operator: 'add', value: 'a' })).toEqual(
      terms([{ matchExpressions: [no] }]),
    );
  });
});
