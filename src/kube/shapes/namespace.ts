import { conditions, metadata } from './metadata.ts';
import { fields, listOf, quantities, text, texts, type Shape } from './shape.ts';

export const namespace: Shape = fields({ metadata, status: fields({ phase: text, conditions }) });

export const quota: Shape = fields({
  metadata,
  spec: fields({
    hard: quantities,
    scopes: texts,
    scopeSelector: fields({
      matchExpressions: listOf(fields({ scopeName: text, operator: text, values: texts }, ['scopeName', 'operator'])),
    }),
  }),
  status: fields({ hard: quantities, used: quantities }),
});

export const limitRange: Shape = fields({
  metadata,
  spec: fields({
    limits: listOf(
      fields(
        {
          type: text,
          max: quantities,
          min: quantities,
          default: quantities,
          defaultRequest: quantities,
          maxLimitRequestRatio: quantities,
        },
        ['type'],
      ),
    ),
  }),
});
