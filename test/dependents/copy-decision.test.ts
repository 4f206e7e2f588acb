import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import {
  CONTENT_HASH_ANNOTATION,
  contentHash,
  copyOf,
  type CopyRecord,
  recordOfCopy,
} from '../../src/dependents/copy.ts';
import { type CopyFacts, decideCopy } from '../../src/dependents/copy-decision.ts';
import type { HostState } from '../../src/dependents/host-objects.ts';
import type { KubeObject } from '../../src/kube/object.ts';

const place = { hostId: 'abcdef0123456789', member: 'east', memberNamespace: 't-shop' };
const secret = (content: object = { data: { k: 'djE=' }, type: 'Opaque' }): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: {
    name: 's',
    namespace: 'shop',
    uid: 'u1',
    labels: { a: 'b' },
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{}' },
  },
  ...content,
});
const made = (object: KubeObject, more: object = {}): CopyRecord => {
  const copy = copyOf('Secret', object, place);
  return recordOfCopy('Secret', { ...copy, metadata: { ...copy.metadata, uid: 'm1', resourceVersion: '7', ...more } });
};
const present = (object: KubeObject): HostState => ({ state: 'present', object });
/** No policies. */
const planFor = (object: KubeObject) => ({ stamp: contentHash(object) });
const facts = (some: Partial<CopyFacts>): CopyFacts => ({
  wanted: true,
  host: present(secret()),
  copy: undefined,
  planFor,
  isOthers: () => false,
  ...some,
});

/** A copy that override rules changed. */
function ruled(object: KubeObject, rules: string): CopyRecord {
  return made(object, { annotations: { [CONTENT_HASH_ANNOTATION]: `${contentHash(object)}.${rules}` } });
}

describe('the copy', () => {
  test('has the content and our marks, and nothing else of the metadata', () => {
    const host = secret({ data: { k: 'djE=' }, type: 'kubernetes.io/tls', immutable: true, newField: [1] });
    expect(copyOf('Secret', host, place)).toEqual({
      apiVersion: 'v1',
      kind: 'Secret',
      data: { k: 'djE=' },
      type: 'kubernetes.io/tls',
      immutable: true,
      newField: [1],
      metadata: {
        name: 's',
        namespace: 't-shop',
        labels: { 'spillway.dev/host': place.hostId, 'spillway.dev/member': 'east' },
        annotations: {
          'spillway.dev/host-namespace': 'shop',
          'spillway.dev/host-name': 's',
          'spillway.dev/host-uid': 'u1',
          'spillway.dev/content-hash': contentHash(host),
        },
      },
    });
  });
  test('keeps what others put on the metadata of the one it replaces', () => {
    const former = made(secret(), {
      labels: { 'spillway.dev/host': place.hostId, backup: 'no' },
      annotations: { seen: 'yes' },
    });
    expect(copyOf('Secret', secret(), place, former).metadata).toMatchObject({
      uid: 'm1',
      resourceVersion: '7',
      labels: { backup: 'no', 'spillway.dev/host': place.hostId },
      annotations: { seen: 'yes', 'spillway.dev/host-uid': 'u1' },
    });
  });
  test('is remembered without its content', () => {
    expect(JSON.stringify(made(secret({ data: { k: 'Y2FuYXJ5' } })))).not.toContain('Y2FuYXJ5');
  });
  test('the hash is of the content alone, whatever its order, hostile keys included', () => {
    const a = secret({ data: { ['__proto__']: 'MQ==', b: 'Mg==' } });
    const b = { ...secret({ data: { b: 'Mg==', ['__proto__']: 'MQ==' } }), metadata: { name: 'other' } };
    expect(contentHash(a)).toBe(contentHash(b));
    expect(contentHash(a)).not.toBe(contentHash(secret({ data: { b: 'Mg==' } })));
  });
});

describe('what to do', () => {
  const host = secret();
  test.each<[string, Partial<CopyFacts>, object]>([
    ['missing: create', {}, { do: 'create' }],
    ['missing, but the pod may never run there: nothing', { wanted: false }, { do: 'nothing', because: 'unwanted' }],
    ['the same: nothing', { copy: made(host) }, { do: 'nothing', because: 'current' }],
    ['the same, only noted: nothing', { copy: made(host), wanted: false }, { do: 'nothing', because: 'current' }],
    ['other content: replace', { copy: made(secret({ data: {}, type: 'Opaque' })) }, { do: 'replace' }],
    [
      'other content, immutable: delete first',
      { copy: made(secret({ data: {}, type: 'Opaque', immutable: true })) },
      { do: 'delete', confirm: false },
    ],
    [
      'another type: delete first',
      { copy: made(secret({ data: { k: 'djE=' }, type: 'x' })) },
      { do: 'delete', confirm: false },
    ],
    [
      'made by other rules for another MemberCluster: nothing',
      { copy: ruled(host, 'r1'), isOthers: () => true },
      { do: 'nothing', because: 'others' },
    ],
    ['made by other rules, for us: replace', { copy: ruled(host, 'r1') }, { do: 'replace' }],
    [
      'made by the same rules for another MemberCluster, of other content: replace',
      { copy: made(secret({ data: {}, type: 'Opaque' })), isOthers: () => true },
      { do: 'replace' },
    ],
    [
      'made for another MemberCluster just as for us: nothing',
      { copy: made(host), isOthers: () => true },
      { do: 'nothing', because: 'current' },
    ],
    [
      'gone in the host, pods left: ask once more, then delete',
      { host: { state: 'absent' }, copy: made(host) },
      { do: 'delete', confirm: true },
    ],
    ['gone on both sides', { host: { state: 'absent' } }, { do: 'nothing', because: 'absent' }],
    [
      'the host cannot be read: nothing',
      { host: { state: 'unknown', problem: 'x' }, copy: made(host) },
      { do: 'nothing', because: 'unknown' },
    ],
    ['being deleted: wait', { copy: made(host, { deletionTimestamp: 'now' }) }, { do: 'nothing', because: 'leaving' }],
    [
      'a token: never',
      { host: present(secret({ type: 'kubernetes.io/service-account-token' })) },
      { do: 'nothing', because: 'refused' },
    ],
  ])('%s', (_, some, action) => {
    expect(decideCopy(facts(some))).toMatchObject(action);
  });

  test('for any facts: no copy goes while the host has it unchanged or cannot be read, none is made without need', () => {
    const hosts = fc.constantFrom<HostState>(
      { state: 'absent' },
      { state: 'unknown', problem: undefined },
      present(host),
    );
    const copies = fc.constantFrom(undefined, made(host), made(secret({ data: {}, immutable: true })));
    fc.assert(
      fc.property(fc.boolean(), hosts, copies, (wanted, state, copy) => {
        const action = decideCopy({ wanted, host: state, copy, planFor, isOthers: () => false });
        if (action.do === 'create') expect([wanted, state.state, copy]).toEqual([true, 'present', undefined]);
        if (action.do === 'delete') expect(action.confirm).toBe(state.state === 'absent');
        if (state.state === 'unknown') expect(action.do).toBe('nothing');
      }),
    );
  });
});
