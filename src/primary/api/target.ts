import type { JobRequest } from '../../shared/job.js';

/** The model that the name of a request stands for. */
export type TargetOf = (name: string) => string | Promise<string>;

/** The request with the model that its name stands for. What follows knows no other name. */
export function withTarget(request: JobRequest, targetOf: TargetOf): JobRequest | Promise<JobRequest> {
  if (request.model === null) return request;
  const target = targetOf(request.model);
  return typeof target === 'string' ? withModel(request, target) : target.then((model) => withModel(request, model));
}

function withModel(request: JobRequest, model: string): JobRequest {
  return model === request.model ? request : { ...request, model };
}
