import { GROUP } from '../api/marks.ts';
import type { Container, Pod } from '../kube/core-v1.ts';

/** Drops fields that neither strategies nor placement read. */
export function withoutBulk({ metadata, spec, status }: Pod): Pod {
  const { annotations = {}, ...rest } = metadata;
  const own = Object.entries(annotations).filter(([key]) => key.startsWith(`${GROUP}/`));
  const { containers, initContainers, ...others } = spec;
  return {
    metadata: { ...rest, annotations: Object.fromEntries(own) },
    spec: {
      ...others,
      containers: containers.map(asked),
      ...(initContainers === undefined ? {} : { initContainers: initContainers.map(asked) }),
    },
    ...(status === undefined ? {} : { status }),
  };
}

/** The fields of a container that scheduling depends on. */
function asked({ name, image, resources, ports, restartPolicy }: Container): Container {
  return {
    name,
    ...(image === undefined ? {} : { image }),
    ...(resources === undefined ? {} : { resources }),
    ...(ports === undefined ? {} : { ports }),
    ...(restartPolicy === undefined ? {} : { restartPolicy }),
  };
}
