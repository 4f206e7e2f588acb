import type { Overriders } from '../api/overriders.ts';
import { isJsonObject, setOwnField } from '../kube/json-equal.ts';
import type { Cluster } from '../api/cluster.ts';
import { OverrideError } from './override-error.ts';

/** `${member.name}`, `${member.labels['key']}`; a second dollar sign in front makes it ordinary text. */
const VARIABLE = /(\$?)\$\{(member\.[^{}]*)\}/g;
const LABEL = /^member\.labels\['([^']*)'\]$/;
/** Fields of overriders that hold values. Everything else names things: paths, containers, operators. */
const VALUES = new Set(['value', 'requests', 'limits']);

/**
 * The overriders with the variables in their values replaced by what they stand for in this member; the same object
 * when there are none.
 *
 * @throws OverrideError for a variable that is unknown, or that the member has no value for.
 */
export function resolveVariables(overriders: Overriders, member: Cluster): Overriders {
  return walk(overriders, 'overriders', false, member) as Overriders;
}

function walk(node: unknown, path: string, inValue: boolean, member: Cluster): unknown {
  if (typeof node === 'string') return inValue ? resolveText(node, path, member) : node;
  if (Array.isArray(node)) {
    const list: readonly unknown[] = node;
    const after = list.map((item, index) => walk(item, `${path}[${index}]`, inValue, member));
    return after.every((item, index) => item === list[index]) ? list : after;
  }
  if (!isJsonObject(node)) return node;
  let after = node;
  for (const [name, field] of Object.entries(node)) {
    const next = walk(field, `${path}.${name}`, inValue || VALUES.has(name), member);
    if (next === field) continue;
    if (after === node) after = { ...node };
    setOwnField(after, name, next);
  }
  return after;
}

function resolveText(text: string, path: string, member: Cluster): string {
  if (!text.includes('${member.')) return text;
  return text.replaceAll(VARIABLE, (whole, escape: string, variable: string) => {
    if (escape !== '') return whole.slice(1);
    const value = valueOf(variable, member);
    if (value === 'unknown') throw new OverrideError(path, `the variable \${${variable}} is not known`);
    if (value === undefined) throw new OverrideError(path, `cluster "${member.name}" has no value for \${${variable}}`);
    return value.is;
  });
}

function valueOf(variable: string, member: Cluster): { is: string } | undefined | 'unknown' {
  const given = (value: string | undefined) => (value === undefined ? undefined : { is: value });
  switch (variable) {
    case 'member.name':
      return given(member.name);
    case 'member.region':
      return given(member.region);
    case 'member.provider':
      return given(member.provider);
    case 'member.zone':
      // Which of several a pod will be in is not known when it is made.
      return member.zones.length === 1 ? given(member.zones[0]) : undefined;
    default: {
      const key = LABEL.exec(variable)?.[1];
      if (key === undefined) return 'unknown';
      return Object.hasOwn(member.labels, key) ? given(member.labels[key]) : undefined;
    }
  }
}
