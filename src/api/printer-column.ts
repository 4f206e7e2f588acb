/** A column of `kubectl get`. */
export interface PrinterColumn {
  name: string;
  type: 'string' | 'integer' | 'date';
  jsonPath: string;
  description?: string;
  /** 1: only with `-o wide`. */
  priority?: number;
}

export const AGE = column('Age', 'date', '.metadata.creationTimestamp');

export function column(
  name: string,
  type: PrinterColumn['type'],
  jsonPath: string,
  description?: string,
): PrinterColumn {
  return { name, type, jsonPath, ...(description === undefined ? {} : { description }) };
}

/** A condition's status, under the name of its type. */
export function conditionColumn(type: string, description: string): PrinterColumn {
  return column(type, 'string', ofCondition(type, 'status'), description);
}

/** Only with `-o wide`. */
export function wide(shown: PrinterColumn): PrinterColumn {
  return { ...shown, priority: 1 };
}

/** The path of a field of a condition. */
export function ofCondition(type: string, field: 'status' | 'reason' | 'message'): string {
  return `.status.conditions[?(@.type=="${type}")].${field}`;
}
