import { createHash } from 'node:crypto';
import { parse, stringify } from 'yaml';
import { programVersion } from '../version.ts';
import { manifestFiles, manifestObjects, type ManifestObject } from './manifests.ts';

/** What may be chosen of an installation. */
export interface Choices {
  /** Of the manager. */
  image: string;
  /** Of the manager, and of the second scheduler. */
  replicas: number;
  /** Which kube-scheduler asks Spillway: a second one that is part of the installation, or the cluster's own, which is told to. */
  scheduler: 'Second' | 'Own';
  /** Who gives pods what they need to leave the host: admission policies of the API server (1.36), or the manager's webhook. */
  admission: 'Policies' | 'Webhook';
  /** Image of the second scheduler; it should be of the host's version. */
  schedulerImage: string;
  /** Whom virtual nodes are towards the host; ServiceAccount where the host signs no certificates for nodes. */
  hostIdentity: 'Auto' | 'ServiceAccount';
  /** Whether members may exchange Services with the host (spec.services.multiCluster), which takes upstream kinds and further rights. */
  multiCluster: 'None' | 'Exchange';
}

export const DEFAULT_CHOICES: Choices = {
  image: `spillway:${programVersion()}`,
  replicas: 2,
  scheduler: 'Second',
  admission: 'Policies',
  schedulerImage: '',
  hostIdentity: 'Auto',
  multiCluster: 'None',
};

export const SYSTEM_NAMESPACE = 'spillway-system';
export const MANAGER = 'spillway-manager';
/** Its ConfigMap and its Deployment. */
const MANAGER_FILE = 'manager.yaml';
/** Key in the manager's ConfigMap. */
const CONFIGURATION = 'config.yaml';
export const SECOND_SCHEDULER = 'spillway-kube-scheduler';
/** By which pods ask for it. */
export const SCHEDULER_NAME = 'spillway-scheduler';

/** Files below manifests/ that make an installation, in the order in which they are applied. */
export function filesOf({
  scheduler,
  admission,
  hostIdentity,
  multiCluster,
}: Omit<Choices, 'image' | 'replicas' | 'schedulerImage'>): string[] {
  const second = scheduler === 'Second';
  const policies = admission === 'Policies';
  const exchange = multiCluster === 'Exchange';
  return [
    ...manifestFiles('crds'),
    ...(exchange ? ['multi-cluster/crds.yaml'] : []),
    'rbac.yaml',
    'secrets.yaml',
    'node-guard.yaml',
    'storage.yaml',
    'outages.yaml',
    ...(hostIdentity === 'ServiceAccount' ? ['rbac-service-account.yaml'] : []),
    'scheduler/rbac.yaml',
    'scheduler/pod-guard.yaml',
    'scheduler/gangs.yaml',
    'scheduler/descheduler.yaml',
    'scheduler/service.yaml',
    'admission/validation.yaml',
    'admission/node-taints.yaml',
    ...(exchange ? ['multi-cluster/host.yaml'] : []),
    MANAGER_FILE,
    ...(second ? ['scheduler/second-scheduler.yaml', 'scheduler/scheduler-guard.yaml'] : []),
    ...(policies ? ['admission/pod-defaults.yaml', 'admission/node-constraints.yaml'] : ['admission/webhook.yaml']),
    ...(policies && second ? ['admission/scheduler-name.yaml'] : []),
    ...(policies && !second ? ['scheduler/extender-pods.yaml'] : []),
  ];
}

/** Every object of an installation, in the order in which they are applied; `edited`: the configuration in place of the one that is shipped. */
export function installation(choices: Choices, edited?: string): ManifestObject[] {
  return filesOf(choices)
    .flatMap(manifestObjects)
    .map((object) => chosen(object, choices, edited));
}

interface Deployment extends ManifestObject {
  spec: { replicas: number; template: { metadata: object; spec: { containers: { image: string }[] } } };
}

function chosen(object: ManifestObject, choices: Choices, edited: string | undefined): ManifestObject {
  const { kind, metadata } = object;
  if (kind === 'Deployment') {
    return metadata.name === MANAGER
      ? withConfiguration(withImage(object as Deployment, choices.image, choices.replicas), choices, edited)
      : withImage(object as Deployment, choices.schedulerImage, choices.replicas);
  }
  return isConfiguration(object) ? withSettings(object, choices, edited) : object;
}

function withImage(deployment: Deployment, image: string, replicas: number): Deployment {
  const { spec } = deployment;
  const { template } = spec;
  // Each has one container. Without a name of another image it stays as it is shipped.
  const containers = template.spec.containers.map((one) => (image === '' ? one : { ...one, image }));
  return {
    ...deployment,
    spec: { ...spec, replicas, template: { ...template, spec: { ...template.spec, containers } } },
  };
}

/** The manager reads its configuration at the start: its pods carry a mark of what differs, so that another choice makes new ones. */
function withConfiguration(deployment: Deployment, choices: Choices, edited: string | undefined): Deployment {
  const settings = settingsOf(choices);
  if (Object.keys(settings).length === 0 && edited === undefined) return deployment;
  const { spec } = deployment;
  const { template } = spec;
  const mark = markOf(edited ?? JSON.stringify(settings));
  const metadata = { ...template.metadata, annotations: { 'checksum/config': mark } };
  return { ...deployment, spec: { ...spec, template: { ...template, metadata } } };
}

/** What of the configuration differs from the one that is shipped. */
export function settingsOf({ scheduler, admission, hostIdentity }: Choices): object {
  return {
    ...(hostIdentity === 'Auto' ? {} : { hostIdentity }),
    ...(admission === 'Policies'
      ? {}
      : {
          admission: {
            ...(scheduler === 'Second' ? { schedulerName: SCHEDULER_NAME } : {}),
            splitNodeConstraints: true,
            webhook: { enabled: true },
          },
        }),
  };
}

/** The configuration as it is shipped, comments included, unless something else is chosen, or it is edited. */
function withSettings(configMap: ManifestObject, choices: Choices, edited: string | undefined): ManifestObject {
  const settings = settingsOf(choices);
  if (edited !== undefined) return { ...configMap, data: { [CONFIGURATION]: edited } } as ManifestObject;
  if (Object.keys(settings).length === 0) return configMap;
  const shipped = parse(configurationIn(configMap) ?? '') as object;
  return { ...configMap, data: { [CONFIGURATION]: stringify({ ...shipped, ...settings }) } } as ManifestObject;
}

/** The text that the manager reads, in its ConfigMap. */
export function configurationIn(configMap: ManifestObject): string | undefined {
  return (configMap as ManifestObject & { data?: Record<string, string> }).data?.[CONFIGURATION];
}

/** That text as this version ships it. */
export function shippedConfiguration(choices: Choices): string {
  const configMap = manifestObjects(MANAGER_FILE).find(isConfiguration);
  return configMap === undefined ? '' : (configurationIn(withSettings(configMap, choices, undefined)) ?? '');
}

function isConfiguration({ kind, metadata }: ManifestObject): boolean {
  return kind === 'ConfigMap' && metadata.name === MANAGER;
}

/** The mark of a text, by which a change of it is seen. */
export function markOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
