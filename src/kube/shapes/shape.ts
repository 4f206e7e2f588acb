import { setOwnField } from '../json-equal.ts';
import { RawNumber } from '../json.ts';
import { isQuantity } from '../quantity.ts';

/**
 * Looks whether a value of unknown origin has the JSON types that its readers rely on: undefined if so, else what is wrong,
 * such as `.labels.app is not a string`. Written by hand because it runs for every event of every
 * object: about a fiftieth of the time that parsing takes.
 */
export type Shape = (value: unknown) => string | undefined;

/** As Kubernetes writes them. To be sure of this look is a tenth of what reading one costs. */
const USUAL_TIME = /^\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\dZ$/;
/** Of keys and values of unknown origin no more than this many characters is repeated. */
const LONGEST_KEY = 64;
/** No part of an object that is unknown here may be nested deeper; of Kubernetes' own none is nested a tenth as deep. */
const DEEPEST = 200;

export const text: Shape = (value) => (typeof value === 'string' ? undefined : ' is not a string');
export const flag: Shape = (value) => (typeof value === 'boolean' ? undefined : ' is not true or false');
export const number: Shape = (value) =>
  typeof value === 'number' || value instanceof RawNumber ? undefined : ' is not a number';
export const time: Shape = (value) =>
  typeof value === 'string' && (USUAL_TIME.test(value) || !Number.isNaN(Date.parse(value)))
    ? undefined
    : ' is not a time';
export const object: Shape = (value) => (isRecord(value) ? unknownPart(value) : ' is not an object');

/** An object whose fields, where it has them, are of these shapes. A null counts as none and is removed: Go writes some. */
export function fields(shapes: Record<string, Shape>, required: readonly string[] = []): Shape {
  const known = new Map(Object.entries(shapes));
  return (value) => {
    if (!isRecord(value)) return ' is not an object';
    let nulls = false;
    // By what the object has, which is less than what it may have.
    for (const name in value) {
      const shape = known.get(name);
      const field = value[name];
      if (field === null) {
        nulls ||= shape !== undefined;
        continue;
      }
      if (shape === undefined && typeof field !== 'object') continue;
      const problem = shape === undefined ? unknownPart(field) : shape(field);
      if (problem !== undefined) return `.${name.slice(0, LONGEST_KEY)}${problem}`;
    }
    if (nulls) removeNulls(value, (name) => known.has(name));
    for (const name of required) if (value[name] === undefined) return `.${name} is missing`;
    return undefined;
  };
}

export function listOf(shape: Shape): Shape {
  return (value) => {
    if (!Array.isArray(value)) return ' is not a list';
    for (let i = 0; i < value.length; i++) {
      const problem = shape(value[i]);
      if (problem !== undefined) return `[${i}]${problem}`;
    }
    return undefined;
  };
}

/** An object all of whose values are of this shape. A null counts as none and is removed. */
export function mapOf(shape: Shape): Shape {
  return (value) => {
    if (!isRecord(value)) return ' is not an object';
    let nulls = false;
    for (const key in value) {
      const entry = value[key];
      if (entry === null) {
        nulls = true;
        continue;
      }
      const problem = shape(entry);
      if (problem !== undefined) return `.${key.slice(0, LONGEST_KEY)}${problem}`;
    }
    if (nulls) removeNulls(value, () => true);
    return undefined;
  };
}

export const texts = listOf(text);
export const textMap = mapOf(text);
/** Resource names to quantities. */
export const quantities = mapOf((value) =>
  typeof value === 'string' && isQuantity(value) ? undefined : number(value) && ' is not a quantity',
);

/** Nobody here looks into it, but many things walk through objects as a whole. */
function unknownPart(value: unknown): string | undefined {
  return isDeep(value, DEEPEST) ? ' is nested too deeply' : undefined;
}

function isDeep(value: unknown, left: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  if (left === 0) return true;
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) if (isDeep(value[i], left - 1)) return true;
    return false;
  }
  const record = value as Record<string, unknown>;
  for (const name in record) if (isDeep(record[name], left - 1)) return true;
  return false;
}

/**
 * All fields go, the last first, and those that stay come back: an object that loses another field than its last one becomes a
 * table, which takes many times the memory.
 */
function removeNulls(object: Record<string, unknown>, which: (name: string) => boolean): void {
  const all = Object.entries(object);
  for (const [name] of all.toReversed()) delete object[name];
  for (const [name, field] of all) if (field !== null || !which(name)) setOwnField(object, name, field);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
