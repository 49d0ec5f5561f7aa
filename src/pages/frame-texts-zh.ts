/** Lists the Chinese texts of the frame of every page. The glossary in docs/reference/glossary-zh.md has the words. */
import type { Texts } from '../language/texts.ts';
import { explainFrameFailure } from './failures/failures-zh.ts';
import type { frameTexts } from './frame-texts.ts';

export const frameTextsZh: Texts<typeof frameTexts> = {
  languages: '语言',
  product: 'Trivet',
  footer: 'Trivet 负责登录，并在应用代表您操作之前征求您的同意。',
  skipToContent: '跳到正文',
  navigation: '控制台',
  menu: '菜单',
  script: { copy: '复制', copied: '已复制', download: '下载', show: '显示', hide: '隐藏' },
  start: '首页',
  signedInAs: '当前用户',
  signOut: '退出登录',
  cancel: '取消',
  back: '返回',
  save: '保存',
  remove: '移除',
  confirm: (label) => `确认${label}`,
  searchAndFilter: '搜索与筛选',
  unknown: '未知',
  mistakes: '请更正以下问题',
  changedMeanwhile: '您修改的内容在此期间已在别处被修改。表单现在显示最新内容：请重新修改并保存。',
  marks: { comma: '，', list: '、', stop: '。', colon: '：' },
  explain: explainFrameFailure,
  goOn: {
    title: '正在跳转',
    lead: (target) => `即将跳转到 ${target}。`,
    link: '立即前往',
  },
  leave: {
    title: '要离开本服务吗？',
    lead: (application, target) =>
      `应用“${application}”询问您是否已在此登录，而您尚未登录。仅当这是您预期的操作时，才前往 ${target}。`,
    link: (target) => `前往 ${target}`,
  },
  error: {
    title: '操作未成功',
    notFound: '页面不存在',
    trace: '联系支持人员时，请提供此跟踪 ID：',
    home: '返回首页',
    otherSite: '此表单由其他网站发送。',
    fromOtherSite: {
      invalid: '其他网站发来的请求无效：请求过长或无法读取。需要由将您带到此处的应用更正。',
      tooLarge: '其他网站发来的请求过大。',
      tooMany: '请求过多，请稍后重试。',
      busy: '服务繁忙，请几秒后重试。',
      failed: '服务出错。请重试，或告知管理员出错的时间。',
    },
    refusalGone: '此表单的错误信息已不再显示。请返回表单并重新提交。',
  },
};
