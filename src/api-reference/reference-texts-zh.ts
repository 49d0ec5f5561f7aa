/** Lists the Chinese texts of the pages that describe the API. */
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
  verification: {
    title: '接收端如何确认发送方',
    lead: '每个投递都带有只有本服务和接收端才能算出的证明，它由 Webhook 的密钥生成。请在解析 JSON 之前对收到的原始字节计算，并以固定时间比较。证明不符的投递应当拒绝。',
    headers:
      '这些程序验证 gitcode 格式在 encryption_type 为 1 时的 X-GitCode-Signature-256 和 github 格式的 X-Hub-Signature-256，两者的算法相同。encryption_type 为 0（默认）时，gitcode 改为在 X-GitCode-Token 中发送密码，请以固定时间比较。gitee 和 gitlab 的接收端验证 webhook-signature，每种格式在两种取值下都有它。',
    usage:
      '每个程序以密钥和请求头的值为参数，从标准输入读取正文；投递真实时以 0 退出。命令行脚本无法以固定时间比较，只用于试验，请勿用于接收端。',
    standard: 'webhook-signature',
    standardLead:
      '它还覆盖时间；更换密钥后的一天内，每个密钥各有一个签名。程序的参数是密钥，以及请求头 webhook-id、webhook-timestamp 和 webhook-signature。其他语言请使用 Standard Webhooks 的库（https://www.standardwebhooks.com/）。',
  },
  arrayOf: '数组：',
  valuesOf: '对象，值的类型：',
  above: (limit) => `大于 ${limit}`,
  atLeast: (limit) => `至少 ${limit}`,
  atMost: (limit) => `最多 ${limit}`,
  between: (least, most) => `${least} 至 ${most}`,
  characters: (range) => `${range} 个字符`,
  items: (range) => `${range} 项`,
  preset: '默认',
  and: '且',
  or: '或',
  any: '任意',
  example: (name) => `示例：${name}`,
};
