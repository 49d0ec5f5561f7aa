import type { Texts } from '../language/texts.ts';
import { frameTextsZh } from '../pages/frame-texts-zh.ts';
import type { referenceTexts } from './reference-texts.ts';

export const referenceTextsZh: Texts<typeof referenceTexts> = {
  ...frameTextsZh,
  title: 'API 参考',
  lead: '本服务的所有操作，来自其 OpenAPI 文档。文档内容为英文。',
  eventsLead: 'Webhook 按各种格式发送给接收端的内容。',
  download: 'OpenAPI 文档（JSON）',
  events: 'Webhook 投递',
  operations: '操作',
  schemas: '数据结构',
  sections: '章节',
  takes: '安全',
  anonymous: '无需令牌',
  parameters: '参数',
  body: '请求正文',
  answer: (status) => `响应 ${status}`,
  required: '必填',
  arrayOf: '数组：',
  and: '且',
  or: '或',
  any: '任意',
  example: (name) => `示例：${name}`,
};
