import type {
  Condition,
  LabelSelector,
  NodeSelector,
  ObjectReference,
  ResourceList,
  ResourceRequirements,
} from './core-v1.ts';
import type { KubeObject } from './object.ts';

export interface PersistentVolumeClaim extends KubeObject {
  spec: {
    accessModes?: string[];
    resources?: ResourceRequirements;
    storageClassName?: string;
    volumeName?: string;
    volumeMode?: string;
    selector?: LabelSelector;
    dataSource?: object;
    dataSourceRef?: object;
    volumeAttributesClassName?: string;
  };
  status?: {
    phase?: 'Pending' | 'Bound' | 'Lost';
    capacity?: ResourceList;
    conditions?: Condition[];
  };
}

export interface PersistentVolume extends KubeObject {
  spec: {
    accessModes?: string[];
    capacity?: ResourceList;
    volumeMode?: string;
    storageClassName?: string;
    persistentVolumeReclaimPolicy?: string;
    claimRef?: ObjectReference;
    csi?: { driver: string; volumeHandle: string; volumeAttributes?: Record<string, string> };
    nodeAffinity?: { required?: NodeSelector };
  };
  status?: { phase?: string };
}

export interface StorageClass extends KubeObject {
  provisioner: string;
  parameters?: Record<string, string>;
  reclaimPolicy?: string;
  volumeBindingMode?: string;
}
