import { describe, expect, it } from 'vitest';
import type { OverridePolicy } from '../../src/api/override-policy.ts';
import type { PersistentVolumeClaim } from '../../src/kube/volumes.ts';
import { type ClaimOverridesPort, overriddenClaim, planClaim } from '../../src/dependents/claim-overrides.ts';
import { hostClaim } from '../fixtures/claims.ts';
import { EAST, policy } from '../overrides/rendered-pod.ts';

const CLAIM = { apiVersion: 'v1', kind: 'PersistentVolumeClaim' };
const port = (policies: readonly OverridePolicy[], more: Partial<ClaimOverridesPort> = {}): ClaimOverridesPort => ({
  unknown: () => undefined,
  policies: () => policies,
  member: () => EAST,
  podIdentities: () => undefined,
  ...more,
});
const classTo = (value: string | undefined, more: object = {}): object => ({
  storageClassOverrider: [
    { operator: value === undefined ? 'remove' : 'replace', ...(value === undefined ? {} : { value }), ...more },
  ],
});
const forClaims = (overriders: object, selector: object = {}): OverridePolicy =>
  policy('ClusterOverridePolicy', 'claims', {
    resourceSelectors: [{ ...CLAIM, ...selector }],
    overrideRules: [{ overriders }],
  });

/** The claim as it is made in the member, where its class is `ssd` if no policy says otherwise. */
function made(claim: PersistentVolumeClaim, from: ClaimOverridesPort): PersistentVolumeClaim {
  const plan = planClaim(claim, from);
  if (typeof plan === 'string' || 'refused' in plan) throw new Error(JSON.stringify(plan));
  const outcome = overriddenClaim(claim, plan, { hostId: 'host', namespace: 't-shop', memberClass: 'ssd' });
  if ('refused' in outcome) throw new Error(outcome.refused);
  return outcome.claim;
}
const record = ({ metadata }: PersistentVolumeClaim): string =>
  metadata.annotations?.['spillway.dev/applied-overrides'] ?? '';

describe('policies and claims', () => {
  it('choose the class of the member, and are recorded without values', () => {
    const claim = made(hostClaim(), port([forClaims(classTo('premium-${member.region}', { from: 'disk' }))]));
    expect(claim.spec.storageClassName).toBe('premium-eu-1');
    expect(JSON.parse(record(claim))).toMatchObject({
      rules: [{ policy: 'ClusterOverridePolicy claims', rule: 0, changes: ['storageClassOverrider'] }],
    });
    expect(record(claim)).not.toContain('premium');
    expect(claim.metadata).toMatchObject({ namespace: 't-shop', labels: { 'spillway.dev/host': 'host' } });
  });

  it('leave what they do not change to the mapping of the member', () => {
    const other = made(hostClaim(), port([forClaims(classTo('premium', { from: 'other' }))]));
    expect(other.spec.storageClassName).toBe('ssd');
    expect(record(other)).toBe('');
    const labelled = made(
      hostClaim(),
      port([forClaims({ labelsOverrider: [{ operator: 'add', value: { tier: 'a' } }] })]),
    );
    expect(labelled.spec.storageClassName).toBe('ssd');
    expect(labelled.metadata.labels).toMatchObject({ tier: 'a' });
  });

  it('may ask for the default class of the member', () => {
    expect(made(hostClaim(), port([forClaims(classTo(undefined))])).spec).not.toHaveProperty('storageClassName');
  });

  it('choose claims by name and labels, and not those of others', () => {
    const chosen = (selector: object, labels = {}) =>
      planClaim(hostClaim({}, { labels }), port([forClaims(classTo('premium'), selector)]));
    expect(chosen({ name: 'db' })).toHaveProperty('rules');
    expect(chosen({ name: 'web' })).toBe('none');
    const byLabel = { labelSelector: { matchLabels: { app: 'db' } } };
    expect(chosen(byLabel, { app: 'db' })).toHaveProperty('rules');
    expect(chosen(byLabel)).toBe('none');
    expect(planClaim(hostClaim(), undefined)).toBe('none');
    expect(planClaim(hostClaim(), port([], { unknown: () => ({}) }))).toBe('unknown');
  });

  it.each([
    ['the size', { path: '/spec/resources/requests/storage', operator: 'replace', value: '1Ti' }],
    ['the volume', { path: '/spec/volumeName', operator: 'add', value: 'somebody-elses' }],
    ['the content', { path: '/spec/dataSource', operator: 'add', value: { kind: 'VolumeSnapshot', name: 'a' } }],
    ['whose it is', { path: '/metadata/annotations/spillway.dev~1host-uid', operator: 'replace', value: 'x' }],
  ])('cannot change %s, also not as an administrator', (_, operation) => {
    expect(planClaim(hostClaim(), port([forClaims({ plaintext: [operation] })]))).toEqual({
      refused: expect.stringMatching(
        /^ClusterOverridePolicy claims, .*PersistentVolumeClaim shop\/db .*cluster "east"/,
      ) as string,
    });
  });

  it('for a pod reach the claims of its generic ephemeral volumes, with the class alone', () => {
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'web-0', uid: 'pod-uid', controller: true };
    const claim = hostClaim({}, { name: 'web-0-scratch', ownerReferences: [owner] });
    const web = { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web' };
    const overriders = {
      ...classTo('fast'),
      plaintext: [{ path: '/spec/containers/0/tty', operator: 'add', value: true }],
    };
    const forWeb = policy('OverridePolicy', 'web', { resourceSelectors: [web], overrideRules: [{ overriders }] });
    const asked: string[] = [];
    const known = port([forWeb], {
      podIdentities: (key, uid) => {
        asked.push(`${key} ${uid}`);
        return [
          { apiVersion: 'v1', kind: 'Pod', name: 'web-0', labels: {} },
          { ...web, labels: {} },
        ];
      },
    });
    expect(made(claim, known).spec.storageClassName).toBe('fast');
    expect(asked).toContain('shop/web-0 pod-uid');
    expect(planClaim(claim, port([forWeb]))).toBe('unknown');
    // The policy for the claim itself comes last.
    expect(made(claim, { ...known, policies: () => [forWeb, forClaims(classTo('slow'))] }).spec.storageClassName).toBe(
      'slow',
    );
    // An ordinary claim is no part of a pod.
    expect(planClaim(hostClaim(), known)).toBe('none');
  });
});
