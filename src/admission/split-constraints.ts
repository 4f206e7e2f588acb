import { MEMBER_CONSTRAINTS_ANNOTATION, MEMBER_LABEL } from '../api/marks.ts';
import { requiredTerms } from '../api/virtual-node-choice.ts';
import { isKnownOfVirtualNodes } from '../api/virtual-node-labels.ts';
import { entryOf, type JsonRecord, listOf, recordOf } from '../kube/json-fields.ts';
import type { PatchStep } from './patch-step.ts';
import { requireTerms } from './required-affinity.ts';

interface Line {
  readonly key: string;
  readonly operator: string;
  readonly values: readonly string[];
}
interface Term {
  readonly matchExpressions: readonly Line[];
  readonly matchFields: readonly Line[];
}

/** Not plain, so nothing is made of it. */
const NO_TEXT = '"';
/** All that label keys, operators and the values of labels and names are made of; nothing that JSON would escape. */
const PLAIN = /^[-A-Za-z0-9_./]*$/;
const ANY_VIRTUAL_NODE: Line = { key: MEMBER_LABEL, operator: 'Exists', values: [] };

/**
 * Lets a pod that asks for real nodes by label be sent to members: what it asks for is kept in an annotation, for the nodes
 * of the member, and the host's scheduler holds a virtual node only to what speaks of virtual nodes. Real nodes of the host
 * are held to all of it, as before: each of the ORed terms becomes two, one for either kind of node. A virtual node has no
 * labels that only some of the nodes behind it have, so without this the host's scheduler would leave it out.
 *
 * Empty when there is nothing to split, when the pod has the annotation already, and for terms nobody could make sense of.
 */
export function splitConstraints(metadata: JsonRecord, spec: JsonRecord): PatchStep[] {
  const annotations = recordOf(metadata['annotations']) ?? {};
  if (entryOf(annotations, MEMBER_CONSTRAINTS_ANNOTATION) !== undefined) return [];
  const selector = sorted(recordOf(spec['nodeSelector']) ?? {});
  const keys = Object.keys(selector).filter((key) => !isKnownOfVirtualNodes(key));
  const terms = requiredTerms(spec).map(termOf);
  const speaksOfNodes = terms.some(({ matchExpressions }) =>
    matchExpressions.some(({ key }) => !isKnownOfVirtualNodes(key)),
  );
  if ((keys.length === 0 && !speaksOfNodes) || !isPlain(selector, terms)) return [];
  const asked = keys.map((key) => ({ key, operator: 'In', values: [text(selector[key])] }));
  return [
    ...annotate(annotations, { nodeSelector: selector, terms }),
    ...keys.map((key): PatchStep => ({ op: 'remove', path: `/spec/nodeSelector/${escape(key)}` })),
    requireTerms(spec, splitTerms(terms, asked)),
  ];
}

function splitTerms(terms: readonly Term[], asked: readonly Line[]): Term[] {
  const none = terms.length === 0;
  const all = none ? [{ matchExpressions: [], matchFields: [] }] : terms;
  // A term without lines matches no node, and must not begin to.
  const isEmpty = (term: Term): boolean => !none && term.matchExpressions.length + term.matchFields.length === 0;
  return [
    ...all.map((term) => (isEmpty(term) ? term : { ...term, matchExpressions: [...term.matchExpressions, ...asked] })),
    ...all
      .filter((term) => !isEmpty(term))
      .map(({ matchExpressions, matchFields }) => ({
        matchExpressions: [...matchExpressions.filter(({ key }) => isKnownOfVirtualNodes(key)), ANY_VIRTUAL_NODE],
        matchFields,
      })),
  ];
}

function termOf(value: unknown): Term {
  const { matchExpressions, matchFields } = recordOf(value) ?? {};
  return { matchExpressions: listOf(matchExpressions).map(lineOf), matchFields: listOf(matchFields).map(lineOf) };
}

function lineOf(value: unknown): Line {
  const { key, operator, values } = recordOf(value) ?? {};
  return { key: text(key), operator: text(operator), values: listOf(values).map(text) };
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : NO_TEXT;
}

function isPlain(selector: JsonRecord, terms: readonly Term[]): boolean {
  const lines = terms.flatMap(({ matchExpressions, matchFields }) => [...matchExpressions, ...matchFields]);
  const texts = lines.flatMap(({ key, operator, values }) => [key, operator, ...values]);
  return [...Object.entries(selector).flat(), ...texts].every((one) => PLAIN.test(text(one)));
}

function annotate(annotations: JsonRecord, asked: { nodeSelector: JsonRecord; terms: readonly Term[] }): PatchStep[] {
  const required = asked.terms.length === 0 ? null : { nodeSelectorTerms: asked.terms };
  const value = JSON.stringify({
    nodeSelector: asked.nodeSelector,
    nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: required },
  });
  const path = '/metadata/annotations';
  return Object.keys(annotations).length === 0
    ? [{ op: 'add', path, value: { [MEMBER_CONSTRAINTS_ANNOTATION]: value } }]
    : [{ op: 'add', path: `${path}/${escape(MEMBER_CONSTRAINTS_ANNOTATION)}`, value }];
}

function sorted(record: JsonRecord): JsonRecord {
  return Object.fromEntries(Object.entries(record).toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** As a part of a JSON pointer (RFC 6901). */
function escape(key: string): string {
  return key.replaceAll('~', '~0').replaceAll('/', '~1');
}
