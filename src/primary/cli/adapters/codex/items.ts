import type { Image, Message } from '../../contract/adapter.js';

/** How a turn and the messages before it are told. */

type MessageContent = Pick<Message, 'text' | 'images'>;

/** As the protocol takes the input of a turn. */
export function inputOf(message: MessageContent): readonly unknown[] {
  return parts(message, (text) => ({ type: 'text', text, text_elements: [] }), imageInput);
}

export function imageInput(image: Image) {
  return { type: 'image', url: dataUrl(image) } as const;
}

/** As the Responses API takes the messages of the past. */
export function itemOf(message: Message): unknown {
  const type = message.role === 'assistant' ? 'output_text' : 'input_text';
  const content = parts(
    message,
    (text) => ({ type, text }),
    (image) => ({ type: 'input_image', image_url: dataUrl(image) }),
  );
  return { type: 'message', role: message.role, content };
}

/** The text, cut where its images stand. The API takes no empty pieces. */
function parts(
  { text, images = [] }: MessageContent,
  textPart: (text: string) => unknown,
  imagePart: (image: Image) => unknown,
): readonly unknown[] {
  const sorted = images.toSorted((a, b) => a.at - b.at);
  const pieceOf = (from: number | undefined, to?: number) => text.slice(from ?? 0, to);
  const textOf = (piece: string) => (piece === '' ? [] : [textPart(piece)]);
  const before = sorted.flatMap((image, index) => [
    ...textOf(pieceOf(sorted[index - 1]?.at, image.at)),
    imagePart(image),
  ]);
  return [...before, ...textOf(pieceOf(sorted.at(-1)?.at))];
}

function dataUrl({ mediaType, data }: Image): string {
  return `data:${mediaType};base64,${data}`;
}
