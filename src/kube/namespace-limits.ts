import type { ResourceList } from './core-v1.ts';
import type { KubeObject } from './object.ts';

export interface ResourceQuota extends KubeObject {
  spec?: { scopes?: string[]; scopeSelector?: { matchExpressions?: QuotaScope[] } };
  /** What is enforced; of the spec only once a controller has taken it over. */
  status?: { hard?: ResourceList; used?: ResourceList };
}
export interface QuotaScope {
  scopeName: string;
  operator: string;
  values?: string[];
}
export interface LimitRange extends KubeObject {
  spec?: { limits?: LimitRangeItem[] };
}
export interface LimitRangeItem {
  type: string;
  max?: ResourceList;
  min?: ResourceList;
  default?: ResourceList;
  defaultRequest?: ResourceList;
  maxLimitRequestRatio?: ResourceList;
}
