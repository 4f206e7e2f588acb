import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { serviceAccountModeOf } from '../../src/api/service-account-mode.ts';
import type { Pod } from '../../src/kube/core-v1.ts';
import { canonicalJson } from '../../src/kube/canonical-json.ts';
import { misshapen, PODS } from '../../src/kube/resource.ts';
import { appliedHash } from '../../src/pods/applied.ts';
import { memberUpdates } from '../../src/pods/member-updates.ts';
import { translatePod } from '../../src/pods/translate.ts';
import { CONTEXT, madePod } from '../fixtures/translation.ts';
import { fuzz } from './fuzz.ts';
import { changed, text } from './inputs.ts';

const PODS_OF = [madePod('deployment'), madePod('statefulSet'), madePod('job')];
/** Named by the API server. */
const pod = changed<Pod>(...PODS_OF).filter(
  (one) =>
    typeof one === 'object' &&
    one !== null &&
    misshapen(PODS, one) === undefined &&
    typeof one.metadata?.name === 'string' &&
    typeof one.spec === 'object' &&
    one.spec !== null,
);

describe('pods of the host', () => {
  fuzz('become a pod of the member under its own marks, or are refused in words', pod, { share: 3_000 }, (pod) => {
    const before = canonicalJson(pod);
    const translation = translatePod(pod, CONTEXT);
    expect(canonicalJson(pod)).toBe(before);
    expect(appliedHash(pod)).toMatch(/^v1:/);
    if (translation.kind === 'refused') {
      expect(translation.message).not.toBe('');
      return;
    }
    const { metadata, spec } = translation.pod;
    expect(metadata.namespace).toBe(CONTEXT.memberNamespace);
    expect(metadata.labels?.['spillway.dev/host']).toBe(CONTEXT.hostId);
    expect([metadata.ownerReferences, metadata.uid, metadata.resourceVersion, spec.nodeName]).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
    ]);
    expect(canonicalJson(translatePod(pod, CONTEXT))).toBe(canonicalJson(translation));
  });

  fuzz(
    'are edited by patches that name nothing but metadata and spec',
    fc.tuple(pod, pod),
    { share: 1_500 },
    ([before, after]) => {
      const made = translatePod(before, CONTEXT);
      if (made.kind === 'refused') return;
      for (const { patch } of memberUpdates(after, made.pod, CONTEXT)) {
        expect(Object.keys(patch).filter((name) => name !== 'metadata' && name !== 'spec')).toEqual([]);
      }
    },
  );

  fuzz(
    'have a service account mode that their member admits',
    fc.tuple(fc.option(text, { nil: undefined }), fc.option(text, { nil: undefined })),
    { share: 500 },
    ([pod, namespaceLabel]) => {
      const answer = serviceAccountModeOf({
        pod,
        namespaceLabel,
        namespace: 'shop',
        member: 'east',
        spec: { mode: 'None', allowed: ['Member'] },
      });
      if ('mode' in answer) expect(['None', 'Member']).toContain(answer.mode);
      else expect(answer.refused.message).toContain('east');
    },
  );
});
