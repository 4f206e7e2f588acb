import fc from 'fast-check';
import { describe, expect } from 'vitest';
import { formatFieldSelector, matchesFields, parseFieldSelector } from '../fixtures/memory-api/field-selector.ts';
import { formatLabelSelector, parseLabelSelector } from '../fixtures/memory-api/label-selector-parser.ts';
import {
  labelSelectorOf,
  type LabelSelectorObject,
  matchesLabels,
  SelectorError,
} from '../../src/kube/label-selector.ts';
import { nodeIsChosenBy, type NodeChoosingSpec } from '../../src/kube/node-selector.ts';
import { firstUntolerated, type Taint, type Toleration } from '../../src/kube/taints.ts';
import { fuzz, throwsOnly } from './fuzz.ts';
import { json, key, text } from './inputs.ts';

const piece = fc.constantFrom('a', 'b.c/d', '=', '==', '!=', '!', ' in ', ' notin ', '(', ')', ',', '>', '<', '1', ' ');
const selectorText = fc.oneof(
  fc.array(piece, { maxLength: 12 }).map((parts) => parts.join('')),
  text,
);
const labels = fc.dictionary(fc.oneof(key, fc.constantFrom('a', 'b.c/d')), fc.constantFrom('', '1', 'a', 'b'));

describe('selectors', () => {
  fuzz('of labels, as text', fc.tuple(selectorText, labels), { share: 2_000 }, ([input, labels]) => {
    const read = throwsOnly([SelectorError], () => parseLabelSelector(input));
    if (read === undefined) return;
    const again = parseLabelSelector(formatLabelSelector(read));
    expect(matchesLabels(again, labels)).toBe(matchesLabels(read, labels));
    expect(formatLabelSelector(again)).toBe(formatLabelSelector(read));
  });

  const word = fc.oneof(fc.constantFrom('a', 'b.c/d', '', '1'), key, text);
  const requirement = fc.record(
    {
      key: word,
      operator: fc.oneof(fc.constantFrom('In', 'NotIn', 'Exists', 'Gt'), text),
      values: fc.array(word, { maxLength: 2 }),
    },
    { requiredKeys: ['key', 'operator'] },
  );
  const object = fc.record(
    {
      matchLabels: fc.dictionary(word, word, { maxKeys: 3 }),
      matchExpressions: fc.array(requirement, { maxLength: 3 }),
    },
    { requiredKeys: [] },
  );
  fuzz('of labels, as objects', fc.tuple(object, labels), { share: 1_500 }, ([input, labels]) => {
    const read = throwsOnly([SelectorError], () => labelSelectorOf(input as LabelSelectorObject));
    if (read === undefined) return;
    expect(matchesLabels(parseLabelSelector(formatLabelSelector(read)), labels)).toBe(matchesLabels(read, labels));
  });

  const fieldPiece = fc.constantFrom(
    'a',
    'metadata.name',
    '__proto__',
    'constructor.name',
    '=',
    '!=',
    '==',
    ',',
    '\\',
    '\\,',
  );
  const fields = fc.oneof(
    fc.array(fieldPiece, { maxLength: 8 }).map((parts) => parts.join('')),
    text,
  );
  fuzz('of fields', fc.tuple(fields, json), { share: 1_500 }, ([input, object]) => {
    const read = throwsOnly([SelectorError], () => parseFieldSelector(input));
    if (read === undefined) return;
    const again = parseFieldSelector(formatFieldSelector(read));
    expect(matchesFields(again, object)).toBe(matchesFields(read, object));
    if (read.some(({ path }) => /proto|constructor/.test(path))) {
      expect(matchesFields(read, {})).toBe(read.every(({ equal, value }) => equal === (value === '')));
    }
  });

  const term = fc.record(
    { matchExpressions: fc.array(requirement, { maxLength: 2 }), matchFields: fc.array(requirement, { maxLength: 2 }) },
    { requiredKeys: [] },
  );
  const choosing = fc.record({
    nodeSelector: fc.dictionary(word, word, { maxKeys: 2 }),
    affinity: fc.record({
      nodeAffinity: fc.record({
        requiredDuringSchedulingIgnoredDuringExecution: fc.record({
          nodeSelectorTerms: fc.array(term, { maxLength: 2 }),
        }),
      }),
    }),
  });
  fuzz('of nodes', fc.tuple(choosing, labels), { share: 1_000 }, ([spec, labels]) => {
    const node = { metadata: { name: 'n', labels } };
    expect(typeof nodeIsChosenBy(spec as NodeChoosingSpec, node)).toBe('boolean');
  });

  const taint = fc.record({ key: word, value: word, effect: fc.constantFrom('NoSchedule', 'NoExecute', '') });
  const toleration = fc.record({
    key: word,
    operator: fc.constantFrom('', 'Exists', 'Equal', 'Lt', 'Gt', 'x'),
    value: word,
  });
  const both = fc.tuple(fc.array(taint, { maxLength: 3 }), fc.array(toleration, { maxLength: 3 }));
  fuzz('of taints', both, { share: 500 }, ([taints, tolerations]: [Taint[], Toleration[]]) => {
    const first = firstUntolerated(tolerations, taints);
    expect(first === undefined || taints.includes(first)).toBe(true);
  });
});
