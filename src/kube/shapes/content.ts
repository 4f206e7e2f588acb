import { metadata } from './metadata.ts';
import { fields, flag, text, textMap, type Shape } from './shape.ts';

/** A ConfigMap or a Secret. */
export const content: Shape = fields({ metadata, type: text, data: textMap, binaryData: textMap, immutable: flag });

/** Of a kind that nothing more is known of here. */
export const anyObject: Shape = fields({ metadata });
