import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { explainFailover } from '../../src/cli/explain-policy/explain-failover.ts';
import type { ExplainedFailover, ExplainedOwner } from '../../src/cli/explain-policy/explained-policy.ts';
import { policy } from '../placement/policies.ts';

const PAGE = readFileSync('docs/concepts/failover.md', 'utf8');
const of = (...kinds: string[]): object[] => kinds.map((kind) => ({ apiVersion: 'any/v1', kind }));
/** Of any kind, so that nothing is left out. */
const ANY = of('Rollout');
const explained = (failover?: object, resourceSelectors: object[] = ANY): ExplainedFailover =>
  explainFailover(
    policy('p', { placement: {}, resourceSelectors, ...(failover === undefined ? {} : { failover }) }).spec,
  );
const owner = (pods: RegExp, failover?: object): ExplainedOwner | undefined =>
  explained(failover).owners.find((one) => pods.test(one.pods));
const causes = (failover?: object): string[] => explained(failover).causes.map(({ says }) => says);

describe('by default', () => {
  it('only what may run twice is replaced when a member is lost, and what is out of service; the kinds are those of the page', () => {
    const { owners } = explained();
    expect(
      owners.map(({ pods, memberLost, outOfService, tainted }) => [pods, memberLost, outOfService, tainted]),
    ).toEqual([
      ['ReplicaSet (so of a Deployment), ReplicationController', 'replaced after 5m (default)', 'replaced', 'moved'],
      ['Job', 'held: its work would be done twice', 'replaced', 'moved'],
      ['Job with podReplacementPolicy: Failed', 'held: its work would be done twice', 'replaced', 'moved'],
      [
        'StatefulSet',
        expect.stringMatching(/^held: a StatefulSet makes no other pod of that name before/),
        'replaced',
        'moved',
      ],
      [
        'any, with claims',
        'held: it uses claims, and its data are there',
        'replaced',
        'held: it uses claims, and its data are there',
      ],
      [
        'gang',
        'held: the pods of a gang have one place together',
        'replaced',
        'held: the pods of a gang have one place together',
      ],
      ['DaemonSet', ...Array.from({ length: 3 }, () => 'held: a DaemonSet has one pod for each node')],
      [
        'without a controller',
        ...Array.from({ length: 3 }, () => 'held: it has no controller that would make another one'),
      ],
    ]);
    const page = PAGE.replaceAll(/\[gang\]\([^)]*\)/g, 'gang').replaceAll('`', '');
    for (const { pods } of owners) expect(page).toContain(pods);
  });

  it('nothing else moves pods, and one of a Deployment goes when another one is Ready', () => {
    expect(causes()).toEqual([
      'never (default): no onUnschedulable',
      'never (default): no application',
      'never (default): no repatriate',
      'never (default): no divisionDrift',
      'never (default): no spreadViolation',
      'never (default): no activation: Eager',
    ]);
    expect(explained().leaving).toBe(
      'A pod of a Deployment that is Ready goes when another one is Ready in its place (purgeMode: Gracefully, default), for which that has 10m: ' +
        'one that is not replaced by then is given back (onTimeout: GiveBack, default). All others are evicted at once.',
    );
  });
});

describe('what the policy says', () => {
  it('of what the next pod learns', () => {
    const state = (label: string): object => ({
      statePreservation: { rules: [{ aliasLabelName: label, jsonPath: '{.podIP}' }] },
    });
    expect(explained({ application: {}, cluster: {} }).handedOn).toBeNull();
    expect(explained({ application: state('a'), cluster: state('b') }).handedOn).toBe(
      'Handed on as labels of the next pod, of a StatefulSet or a workload with one replica, from pods that do not get well: a; from pods moved for other reasons: b.',
    );
  });

  it('of lost members', () => {
    const lost = (onMemberLost: object, pods = /ReplicaSet/): string | undefined =>
      owner(pods, { onMemberLost })?.memberLost;
    expect(lost({ after: '90s' })).toBe('replaced after 90s');
    // Not sooner than a manager can tell.
    expect(lost({ after: '1s' })).toBe('replaced after 15s');
    expect(lost({ action: 'Hold' })).toBe('held: the policy says Hold');
    expect(owner(/ReplicaSet/, { onMemberLost: { action: 'Hold' } })?.outOfService).toBe('held: the policy says Hold');
    expect(lost({ action: 'ReplaceWhenFenced' })).toMatch(
      /^held: the policy says ReplaceWhenFenced, and its virtual node/,
    );
    expect(lost({ action: 'Replace' }, /^Job$/)).toBe('replaced after 5m (default)');
    expect(lost({ action: 'Replace' }, /^Job with/)).toMatch(/^held: its Job makes no other one before this one is/);
    expect(lost({ action: 'Replace' }, /StatefulSet/)).toMatch(/^held: /);
    expect(lost({ onHeal: 'LongestRunning' })).toBe(
      'replaced after 5m (default); of a Deployment the original waits (onHeal: LongestRunning)',
    );
    // No other pods are released from their controller.
    expect(lost({ onHeal: 'LongestRunning', action: 'Replace' }, /Job/)).toBe('replaced after 5m (default)');
  });

  it('of a dry run', () => {
    const { leaving } = explained({ dryRun: true, cluster: { purgeMode: 'Directly' } });
    expect(leaving).toMatch(/^Nothing is moved \(dryRun: true\), .* In earnest: Pods are evicted at once/);
    expect(explained({ dryRun: false }).leaving).toBe(explained().leaving);
  });

  it('of all else', () => {
    const failover = {
      onUnschedulable: { after: '2m' },
      application: {},
      repatriate: { after: '3h' },
      divisionDrift: { after: '10m' },
      spreadViolation: { after: '30s' },
      activation: 'Eager',
    };
    const asked = ['2m', '5m', '3h', '10m', '30s', '15s'].map((after) => `moved after ${after}`);
    expect(causes(failover)).toEqual(asked);
    const never = 'held: the policy says purgeMode: Never';
    // What waits for a node never ran.
    expect(causes({ ...failover, cluster: { purgeMode: 'Never' } })).toEqual([
      asked[0],
      never,
      never,
      never,
      never,
      never,
    ]);
  });

  it('of how pods leave', () => {
    const leaving = (cluster: object): string => explained({ cluster }).leaving;
    expect(leaving({ purgeMode: 'Directly' })).toBe('Pods are evicted at once (purgeMode: Directly).');
    expect(leaving({ gracePeriodSeconds: 60, onTimeout: 'Evict' })).toContain(
      'for which that has 60s: one that is not replaced by then goes all the same (onTimeout: Evict)',
    );
    expect(leaving({ purgeMode: 'Never' })).toMatch(/^Pods stay where they are/);
    expect(owner(/ReplicaSet/, { cluster: { purgeMode: 'Never' } })).toMatchObject({
      memberLost: 'held: the policy says purgeMode: Never',
      outOfService: 'held: the policy says purgeMode: Never',
      tainted: 'held: the policy says purgeMode: Never',
    });
  });
});

it('leaves out what workloads of the kinds that it chooses have no pods of', () => {
  const kinds = (...names: string[]): string[] => explained(undefined, of(...names)).owners.map(({ pods }) => pods);
  expect(kinds('Deployment')).toEqual([
    'ReplicaSet (so of a Deployment), ReplicationController',
    'any, with claims',
    'gang',
  ]);
  expect(kinds('CronJob', 'StatefulSet')).toEqual([
    'Job',
    'Job with podReplacementPolicy: Failed',
    'StatefulSet',
    'any, with claims',
    'gang',
  ]);
  for (const open of ['Rollout', 'Pod']) expect(kinds('Deployment', open)).toHaveLength(8);
});
