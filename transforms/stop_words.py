"""Words that name nothing: articles, pronouns, prepositions, conjunctions, auxiliary verbs of the larger languages.

For choosing names and telling terms, never for a verdict about a document. Only words of at least three letters are
listed where a script has letters, as terms have so many; of Chinese and Japanese the characters that make no word of
their own. The list is ours, by frequency in everyday prose; a language that is not in it is told by how its words are
spread (`transforms.topic_terms`).
"""

from __future__ import annotations

from typing import Final

_LISTS: Final = {
    "ar": """إلى التي الذي بعد بين تلك حتى حيث ذلك على عند غير قبل كان كانت كما لقد منذ هذا هذه وقد وكان وهو وهي""",
    "cs": """aby ale ani ano asi bez byl byla byli bylo být jak jako jde jeho jejich její jen jsem jsme jsou kde
    kdy když která které který mezi nebo není než pod podle pro proto protože před při tak také tam ten toho tom
    tomu tím však""",
    "da": """alle auf blev denne der deres det dette dig din dog efter eller end for fra før han hans har havde
    hende her hun hvad hvis hvor ikke ind jeg kan kun man med meget men mig min mod noget nogle når også over sig
    sin skal som var ved vil ville være været""",
    "de": """aber alle als also andere auch auf aus bei beim bis bist dann das dass dein dem den denn der deren des
    dessen die dies diese diesem diesen dieser dieses doch dort durch ein eine einem einen einer eines für gegen
    habe haben hat hatte hatten hier ich ihm ihn ihnen ihr ihre ihrem ihren ihrer immer ist jede jeder jedoch kann
    kein keine können man mehr mein mit muss nach nicht noch nur ober oder ohne sehr sein seine seinem seinen
    seiner seit sich sie sind sowie und uns unser unter viel vom von vor war waren was weil welche wenn werden wie
    wieder will wird wurde wurden während zum zur zwar zwischen über""",
    "el": """ένα έναν ένας έχει έχουν ήταν από αυτά αυτές αυτή αυτό αυτός για δεν είναι είχαν είχε εκεί ενώ επίσης
    και κατά μέσα μία μετά μια μπορεί πολύ που πριν προς στα στη στην στις στο στον στους την της τις τον του τους
    των όπως όταν ότι""",
    "en": """about above after again against all also although always among and another any anything are aren't
    around because been before being below between both but came can can't cannot come could couldn't did didn't
    does doesn't doing don't done down during each either else ever every few for from further get gets give given
    goes got had hadn't has hasn't have haven't having her here hers herself him himself his how however i'd i'll
    i'm i've into isn't it's its itself just less let like made make makes many may might more most much must
    myself nor not nothing now off often once one only onto other others our ours ourselves out over own per
    perhaps put quite rather same see seem seemed seems shall she should shouldn't since some something still such
    take than that that's the their theirs them themselves then there therefore these they they're this those
    though through thus too under until upon use used uses using very want was wasn't way well were weren't what
    when where whether which while who whom whose why will with within without won't would wouldn't yes yet you
    you're you've your yours yourself""",
    "es": """algo antes aquel aquella aunque bajo bien cada casi como con contra cual cuando cuál del desde donde
    dos durante ella ellas ello ellos entre era eran eres esa esas ese eso esos esta estaba estaban estado estas
    este esto estos está están fue fueron había habían hace hacia han hasta hay las les los luego mas menos
    mientras mucho muy más nada nos nosotros nuestra nuestro otra otras otro otros para pero poco por porque pues
    que quien qué sea según ser sido siempre sin sino sobre son soy sus sólo también tanto tener tenía tiene tienen
    todas todo todos tras una unas uno unos usted éste""",
    "fa": """است اما اند اگر این باید برای بود بین تواند خود دارد شده شود های همه پیش کرد کرده کند""",
    "fi": """ajan eivät eli ennen että heidän hän hänen joita joka jonka jos jossa jotka kaikki kanssa koska kuin
    kun kuten mikä minä mitä mukaan mutta muun myös niiden niin niitä nyt ole oli olivat olla olleet ollut osa ovat
    sekä sen siellä siitä sitä tai tällä tämä tämän tässä vaan vain vielä voi voidaan vuonna""",
    "fr": """afin ainsi alors après aucun aussi autre autres aux avait avant avec avoir bien c'est car cela celle
    celui ces cet cette ceux chaque chez comme comment contre d'un d'une dans depuis des deux dit donc dont elle
    elles encore entre est est-ce eux fait fut hors ici ils jamais jusque l'on les leur leurs lors lorsque lui mais
    moi moins mon même mêmes n'est nos notre nous ont par parce pas pendant peu peut plus plusieurs pour pourquoi
    puis qu'elle qu'il qu'un qu'une quand que quel quelle quelque quelques qui quoi rien s'est sans sera ses
    seulement sien soit son sont sous suis sur tandis tant tel telle toujours tous tout toute toutes trop très une
    vers voir vos votre vous étaient était été être""",
    "he": """אבל אותה אותו אחר אחרי אלא אלה אנו אני אשר בין הוא הזה היא היה היו הייתה זאת חלק יותר כאשר כדי כמו
    לאחר מאוד עוד שלא שלו תחת""",
    "hi": """अपना अपनी अपने आदि इसका इसके इसे उनका उनके उसके एवं ऐसे करके करता करते करना करने कहा किया किसी कुछ कोई
    क्या गया जाता जाती जाते तथा दिया द्वारा नहीं फिर बहुत बाद में मैं यदि यहाँ रहा रहे लिए लेकिन सकता सकते सभी साथ
    हुआ हुई हुए हैं होता होती होते होने""",
    "hu": """ahol aki akkor alatt amely amelyek ami azonban azt azért bár csak egy egyik először előtt ennek ezek
    ezt hanem hogy ill itt jól között különböző lehet lesz meg mely melyek mert mikor mind minden mint már még
    nagyon nem nincs olyan ott pedig saját sem sok szerint több után utána vagy valamint való van vannak volt
    voltak így""",
    "id": """ada adalah agar akan antara apa atau bagi bahwa banyak beberapa belum bisa bukan dalam dan dapat dari
    dengan hal hanya harus ini itu jika juga kami karena kepada kita lain lebih menjadi mereka namun oleh orang
    pada para pernah saat sangat satu saya sebagai sebuah secara sehingga sejak sekitar semua seperti serta setelah
    suatu sudah telah tersebut tidak untuk yang""",
    "it": """agli alla alle allo anche ancora avere aveva bene che chi come con contro cosa così cui dagli dai dal
    dalla dalle dallo degli dei del della delle dello dentro dopo dove due ella era erano essere fino fra già gli
    hanno ieri infatti invece loro lui mai meno mentre mia mio molto negli nei nel nella nelle nello noi non nostra
    nostro ogni oltre ora per perché perciò però più poi possono prima propria proprio può qua quale quali quando
    quanto quella quelle quelli quello questa queste questi questo qui quindi sempre senza sia siano sono sopra
    sotto sta stata stato sua sue sui sul sulla sulle suo suoi tale tra troppo tutta tutte tutti tutto una uno
    verso voi""",
    "nl": """aan alle als altijd andere ben bij daar dan dat deze die dit doch doen door dus een eens elk enkele
    geen haar had hadden heb hebben heeft hem het hier hij hoe hun ieder iemand iets kan kon kunnen maar meer men
    met mij mijn moet naar niet niets nog omdat onder ons ook over reeds tegen tijdens toch toen tot tussen uit van
    veel voor want waren was wat wel werd werden wezen wie wij wil worden wordt zal zei zelf zich zij zijn zoals
    zonder zou zouden""",
    "no": """alle andre bare ble bli blir både den denne der dere deres det dette disse eller enn etter for fordi
    fra før hadde han hans har her hun hva hvem hver hvis hvor hvordan ikke inn jeg kan kunne man mange med meg
    mellom men mer mot noe noen når også opp oss over samme seg selv sin sine skal skulle slik som til under uten
    var ved vil ville være vært""",
    "pl": """aby albo ale ani bardzo bez bym być był była było były choć czy dla dlaczego gdy gdzie ich ile inne
    jak jako jednak jego jej jest jeszcze jeśli już każdy kiedy kto która które którego której który których którzy
    lub mają mnie może można nad nich nie nim niż oraz pod ponieważ poza przed przez przy roku się swoje swój tak
    także tam tego tej tem ten też tych tylko tym wiele więc wszystkie wszystko został została zostały żeby""",
    "pt": """ainda alguns além ante antes aos apenas após aquela aquele até bem cada com como contra das dela dele
    deles depois desde dessa desse desta deste dos durante ela elas ele eles enquanto entre era eram essa esse esta
    estava este está estão foi foram havia isso isto lhe mais mas mesmo meu minha muito nas nem nessa nesse nesta
    neste nos nossa nosso num numa não nós onde outra outras outro outros para pela pelas pelo pelos pode podem
    pois por porque qual quando quanto que quem seja sem sempre sendo ser será seu seus sido sob sobre sua suas são
    também tem tendo ter teve tinha toda todas todo todos três tão uma você""",
    "ro": """acea aceasta această aceea acel acela acest acesta aceste acestea acestei acestui acum afara aici ale
    alt alta alte altul altă apoi are astfel asupra atunci avea aveau care cea cei cel cele celor cum când cât câte
    către dacă dar datorită deci decât despre din după era erau este fie fiecare fiind foarte fost făcut fără iar
    lor lui mai mult multe mulți nici niște ori pentru peste prin sale sau spre sub sunt său toate tot toți trebuie
    una unde unei unele unor unui unul vor încă însă într într-o într-un între""",
    "ru": """без более будет будто была были было быть вам вас ведь весь вот все всего всех где даже для его ему
    если есть еще здесь или как какая какой когда которая которого которой которые который которых кто куда либо
    лишь между меня мне много может можно мой моя над надо наш него нее ней нельзя нет нибудь никогда ним них
    ничего один она они оно перед под после потом потому почти при про раз сам свою себе себя сейчас также такой
    там тебя тем теперь тогда того тоже той только том тот три тут уже хорошо хоть чего чем через что чтобы чуть
    эта эти этих это этого этой этом этот эту является являются""",
    "sv": """alla andra att bara bland blev bli blir dem den denna deras dess dessa det detta dig din där därför
    efter eller ett finns fram från för före genom hade han hans har hennes hon honom hur här icke ingen innan inte
    jag kan kunde man med medan mellan men mer mest mig mot mycket många måste när någon något några och också oss
    redan samma samt sedan sig sin sina ska skulle som till två under upp utan vad var vara varit vid vilka vilken
    vill även över""",
    "tr": """acaba ama ancak artık aslında ayrıca bana bazı belki ben beri bile bir biri birçok biz bize bizim
    bunda bundan bunlar bunu bunun burada böyle daha dahi defa değil diye diğer dolayı eden eder edilen etti ettiği
    gibi göre hangi hatta hem henüz hep hepsi her herhangi hiç ile ilgili ise için işte kadar karşı kendi kim nasıl
    neden nedenle olan olarak oldu olduğu olduğunu olmak olması olup olur ona onlar onu onun oysa pek rağmen sadece
    sanki siz sonra tarafından tüm var veya yani yapılan yer yine yok zaman çok çünkü öyle şey şöyle""",
    "uk": """або але без був була були було бути вам вас ваш вона вони воно все всі він для його ким коли кому крім
    куди лише мені мною може моя між над нам нас наш нею неї ним них ніж один перед поки при про під після раз сам
    себе серед собою так також там твій тебе тим тих того тоді той тому тут усі хто цей цього цієї через чого чому
    щоб яка яке який яких якої якщо якій""",
    "vi": """bởi cho chưa chỉ các cái cùng cũng của hay hoặc hơn khi không lên lúc lại mỗi một nhiều như nhưng
    những này nên nơi nếu phải qua rất rằng rồi sau theo thì trong trên trước tại từng việc vào vẫn với đang điều
    đây được đến""",
}

CHARACTERS: Final = frozenset(
    "的了是在和不有我他她它们這这那个個也就都而及与與或被把于於为為以之其所从從到对對等中上下年月日一二三四五六七八九十百千万あいうえおかがきぎくけげこごさざしじすずせぜそただち"
    "つづてでとどなにぬねのはばひびふへべほぼまみむめもやゆよらりるれろわをんっゃゅょ"
)
"""Characters of Chinese and Japanese that a telling pair of characters does not hold."""

STOP_WORDS: Final = frozenset(
    word for words in _LISTS.values() for line in words.split("\n") for word in line.split(" ") if word
)
"""Folded words (lower case, plain apostrophes) that name no topic."""
