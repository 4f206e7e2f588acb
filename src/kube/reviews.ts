const REVIEWS = /^\/apis\/(?:authentication|authorization)\.k8s\.io\//;

/** Whether what is sent to that path is a question (SubjectAccessReview, TokenReview), which leaves nothing behind. */
export function isReview(path: string): boolean {
  return REVIEWS.test(path);
}
