/** Lists the Chinese texts of notices. */
import type { Texts } from '../language/texts.ts';
import { explainFrameFailure } from '../pages/failures/failures-zh.ts';
import type { noticeTexts } from './notice-texts.ts';

export const noticeTextsZh: Texts<typeof noticeTexts> = {
  language: 'zh-CN',
  hello: (name) => `${name}，您好！`,
  footer: (service) =>
    `Trivet，${service}。同一件事的同一种通知，每小时最多一封邮件。您可以在个人资料页面关闭这些邮件。`,
  hook: {
    open: '打开 Webhook',
    failing: (place, url) => ({
      subject: `${place} 的 Webhook 投递失败`,
      paragraphs: [
        `${place} 的 Webhook 向 ${url} 的投递已连续失败超过五分钟。`,
        '系统会继续重试。持续失败的 Webhook 会被停用。',
      ],
    }),
    disabled: (place, url, reason) => ({
      subject: `${place} 的 Webhook 已停用`,
      paragraphs: [
        `${place} 发往 ${url} 的 Webhook 已停用：${explainFrameFailure(reason)}。`,
        '事件将暂存 7 天。接收端恢复后请重新启用，暂存的事件会随即发送。',
      ],
    }),
    fine: (place, url) => ({
      subject: `${place} 的 Webhook 已恢复正常`,
      paragraphs: [`${place} 的 Webhook 向 ${url} 的投递已重新被接受。`],
    }),
  },
  model: {
    open: '打开模型',
    drift: (model) => ({
      subject: `模型 ${model} 发生漂移`,
      paragraphs: [
        `${model} 的实测延迟与线上版本的预测不再相符。`,
        '系统会用最新的观测数据训练新版本；页面上可以查看误差随时间的变化。',
      ],
    }),
    fine: (model) => ({
      subject: `模型 ${model} 已一小时没有漂移警报`,
      paragraphs: [`最近一小时内，${model} 没有触发漂移警报。`, '页面上可以查看此后的误差，以及当前线上的版本。'],
    }),
  },
  disk: {
    full: (host, folder, freeMib) => ({
      subject: `${host} 的磁盘空间即将用尽`,
      paragraphs: [
        `${host} 上的“${folder}”只剩 ${freeMib} MiB。`,
        '请清理空间或迁移该目录：没有空间时，任何数据都无法保存。',
      ],
    }),
    fine: (host, folder, freeMib) => ({
      subject: `${host} 的磁盘空间已恢复`,
      paragraphs: [`${host} 上的“${folder}”现有 ${freeMib} MiB 可用空间。`],
    }),
  },
};
