import { pino } from 'pino';
import { expect, it } from 'vitest';
import { CopyOverrides } from '../../src/dependents/copy-overrides.ts';
import { recordOfCopy } from '../../src/dependents/copy.ts';
import { CopyWriter } from '../../src/dependents/copy-writer.ts';
import { newDependent } from '../../src/dependents/dependent.ts';
import type { HostObjectFollower } from '../../src/dependents/host-object-follower.ts';
import type { KubeObject } from '../../src/kube/object.ts';
import { FakeHost, FakeMember, HOST_ID } from '../fixtures/dependents.ts';
import { Violations } from '../fixtures/violations.ts';

const SIGNAL = new AbortController().signal;
const REF = { kind: 'Secret', namespace: 'shop', name: 'a' } as const;

function setup() {
  const member = new FakeMember();
  const violations = new Violations();
  const writer = new CopyWriter({
    objects: new FakeHost(),
    copies: member,
    overrides: new CopyOverrides(undefined),
    hostId: HOST_ID,
    member: 'east',
    namespaces: { ensure: (name) => Promise.resolve({ namespace: name }) },
    takenRetryMs: 20,
    invariants: violations,
    logger: pino({ level: 'silent' }),
  });
  return {
    member,
    violations,
    writer,
    dependent: newDependent(REF, REF.namespace, {} as unknown as HostObjectFollower),
  };
}
function secret(type: string): KubeObject {
  const object = { apiVersion: 'v1', kind: 'Secret', metadata: { namespace: 'shop', name: 'a', uid: 'u' }, type };
  return object;
}

it('I13: the token of a service account is not sent, whatever was decided', async () => {
  const { member, violations, writer, dependent } = setup();
  dependent.users.add('shop/web');
  const from = secret('kubernetes.io/service-account-token');
  await expect(writer.perform(dependent, { do: 'create', from }, SIGNAL)).rejects.toMatchObject({ invariant: 'I13' });
  expect([violations.seen, member.writes]).toEqual([['I13'], []]);
});

it('I13: an object that no pod refers to is not sent', async () => {
  const { member, violations, writer, dependent } = setup();
  const from = secret('Opaque');
  const copy = recordOfCopy('Secret', from);
  await expect(writer.perform(dependent, { do: 'replace', from, copy }, SIGNAL)).rejects.toMatchObject({
    invariant: 'I13',
  });
  // Its last pod went while its copy was about to be made: that is no violation.
  await writer.perform(dependent, { do: 'create', from }, SIGNAL);
  expect([violations.seen, member.writes]).toEqual([['I13'], []]);
});

it('what a pod refers to is sent', async () => {
  const { member, violations, writer, dependent } = setup();
  dependent.users.add('shop/web');
  await writer.perform(dependent, { do: 'create', from: secret('Opaque') }, SIGNAL);
  expect([violations.seen, member.writes]).toEqual([[], ['create Secret/shop/a']]);
});
