import type { CreatePrimaryPart } from '../../primary/features/feature.js';
import type { Handlers } from '../../shared/ipc/peer.js';
import type { calls, OriginValues } from './shared.js';

export function createOrigins({ MODEL_API_ALLOWED_ORIGINS: allowed }: OriginValues): CreatePrimaryPart {
  const handlers: Handlers<typeof calls> = { allowedOrigins: () => ({ allowed }) };
  return () => ({ handlers });
}
