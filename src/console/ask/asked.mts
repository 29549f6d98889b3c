/** What POST /chat takes, as far as the page sends it. */
export const efforts = ['low', 'medium', 'high'] as const;
export type ChosenEffort = (typeof efforts)[number];

/** An image that goes with a message. */
export interface AttachedImage {
  readonly name: string;
  readonly mediaType: string;
  /** Base64. */
  readonly data: string;
}

/** One message of the user, with everything that goes with it. */
export interface UserMessage {
  readonly text: string;
  readonly images: readonly AttachedImage[];
  /** Means something in the first message only. */
  readonly system: string;
  /** null: the default one. */
  readonly model: string | null;
  readonly effort: ChosenEffort | null;
  readonly schema: object | null;
}

export type ChatBody = Readonly<Record<string, unknown>>;

/** The body of the request. Without an id it begins a conversation. */
export function chatBodyOf(message: UserMessage, conversationId: string | null): ChatBody {
  const { text, images, system, model, effort, schema } = message;
  return {
    message: text,
    ...(conversationId !== null && { conversation_id: conversationId }),
    ...(conversationId === null && system.trim() !== '' && { system }),
    ...(model !== null && { model }),
    ...(effort !== null && { effort }),
    ...(schema !== null && { schema }),
    ...(images.length > 0 && { images: images.map(({ mediaType, data }) => ({ media_type: mediaType, data })) }),
  };
}
