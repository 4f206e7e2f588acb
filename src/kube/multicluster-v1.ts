import type { ServicePort } from './service.ts';
import type { KubeObject } from './object.ts';
import { resourceOf } from './resource.ts';
import { serviceExport, serviceImport } from './shapes/multi-cluster.ts';

/** The multicluster.x-k8s.io/v1beta1 shapes that we read and write (KEP-1645). */
export interface ExportCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
  observedGeneration?: number;
}

/** Asks that the Service of its name and namespace can be called from the other clusters. */
export interface ServiceExport extends KubeObject {
  status?: { conditions?: ExportCondition[] };
}

export type ImportType = 'ClusterSetIP' | 'Headless';

export type ImportPort = Pick<ServicePort, 'name' | 'protocol' | 'appProtocol' | 'port'>;

export interface ServiceImportSpec {
  type: ImportType;
  ports: ImportPort[];
  ips?: string[];
  ipFamilies?: string[];
  sessionAffinity?: string;
  sessionAffinityConfig?: { clientIP?: { timeoutSeconds?: number } };
  internalTrafficPolicy?: string;
  trafficDistribution?: string;
}

/** Tells of a Service that clusters export, in every cluster that can call it. */
export interface ServiceImport extends KubeObject {
  spec: ServiceImportSpec;
  status?: { clusters?: { cluster: string }[]; endpointSliceObjects?: string };
}

const VERSION = 'multicluster.x-k8s.io/v1beta1';

export const SERVICE_EXPORTS = resourceOf(VERSION, 'ServiceExport', 'serviceexports', true, serviceExport);

export const SERVICE_IMPORTS = resourceOf(VERSION, 'ServiceImport', 'serviceimports', true, serviceImport);

/** EndpointSlices, and Services that stand for a ServiceImport: its name. */
export const IMPORT_NAME_LABEL = 'multicluster.kubernetes.io/service-name';
/** EndpointSlices: the cluster whose pods they lead to. */
export const SOURCE_CLUSTER_LABEL = 'multicluster.kubernetes.io/source-cluster';
/** ServiceImports: the Service that has their address. */
export const DERIVED_SERVICE_ANNOTATION = 'multicluster.kubernetes.io/derived-service';
